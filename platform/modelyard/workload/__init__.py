"""What a load is: when requests come, how long they are, who sends them. Pure: seeds go in."""
