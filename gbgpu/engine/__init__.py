"""From a statement to work on the devices: plan, then run."""
