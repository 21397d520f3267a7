"""One network over several devices: how it is divided, what that costs, and how devices and links share the time."""
