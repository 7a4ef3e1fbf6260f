"""Who may enter, and how often: pure policy, time passed in."""
