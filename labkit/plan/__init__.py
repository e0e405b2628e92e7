"""What a layout costs and whether it is legal, before any GPU. Standard library only."""
