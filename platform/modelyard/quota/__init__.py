"""Quotas: one bucket per tenant, model class and direction, split over the ingresses.

Pure policy: time is passed in, messages are frozen data, and nothing here waits.
"""
