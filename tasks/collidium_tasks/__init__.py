"""The benchmark tasks that the platform ships, registered through the same hooks as third-party tasks."""
