"""Runs a command of the shop: `manage.py migrate`, `manage.py notify_customers`, `manage.py update_passes`."""

import os
import sys

from django.core.management import execute_from_command_line

os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"
execute_from_command_line(sys.argv)
