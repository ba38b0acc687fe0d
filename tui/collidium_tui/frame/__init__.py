"""What is there whatever screen is shown: status, login, help."""
