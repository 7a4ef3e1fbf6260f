"""Experiments in virtual time.

What decides is production's own code: modelyard.admission's VersionQueue (bound, order, expiry,
what it learns), shares.share_of, LengthPredictor, RetryPolicy and its budgets. Written here again
is what acts on it, which in production belongs to an event loop: queued.QueuedIngress for the
futures and the timer of ingress.turnstile, sharing.Board for ingress.lanes and the board,
clients.Obeying for the loop of modelyard.client.calls. The server is a number of slots.
"""
