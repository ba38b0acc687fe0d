"""The site of Collidium, in the folder ``html``; it holds no code."""
