"""Lock files: layouts that stay as they are while drivers change."""
