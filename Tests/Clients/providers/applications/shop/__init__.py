"""A shop with two applications: one notifies customers with django-push-notifications, the other updates their passes
with django-walletpass.
"""
