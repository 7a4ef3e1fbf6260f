"""What crosses a wire: requests, answers, errors, headers, and the call from ingress to shell."""
