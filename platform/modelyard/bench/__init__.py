"""`modelyard bench`: load in the open loop, measured from when each request was due."""
