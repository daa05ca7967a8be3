"""Multi-task learning: further tasks with heads of their own, trained with the main task."""
