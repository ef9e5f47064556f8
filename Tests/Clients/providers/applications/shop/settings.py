"""Settings of the shop. Each database, and what describes the APNs server, comes from the environment."""

import os

SECRET_KEY = "of a test"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "push_notifications", "django_walletpass",
                  "shop.apps.Shop"]
# A file: django-walletpass deletes registrations in another thread, where an in-memory database would be empty.
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["SHOP_DATABASE"]}}
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = True

PUSH_NOTIFICATIONS_SETTINGS = {
    "APNS_AUTH_KEY_PATH": os.environ["SHOP_APNS_KEY"],
    "APNS_AUTH_KEY_ID": os.environ["SHOP_APNS_KEY_ID"],
    "APNS_TEAM_ID": os.environ["SHOP_APNS_TEAM_ID"],
    "APNS_TOPIC": "com.example.app",
    "APNS_USE_SANDBOX": True,
}
WALLETPASS = {
    "PUSH_AUTH_STRATEGY": "token",
    "TOKEN_AUTH_KEY_PATH": os.environ["SHOP_APNS_KEY"],
    "TOKEN_AUTH_KEY_ID": os.environ["SHOP_APNS_KEY_ID"],
    "TEAM_ID": os.environ["SHOP_APNS_TEAM_ID"],
    "PASS_TYPE_ID": "pass.com.example.coupon",
    "PUSH_SANDBOX": True,
}
