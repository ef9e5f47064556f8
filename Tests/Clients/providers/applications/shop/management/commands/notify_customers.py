import json

from django.core.management.base import BaseCommand
from push_notifications.exceptions import NotificationError
from push_notifications.models import APNSDevice


class Command(BaseCommand):
    """Sends a text to all active devices, and prints what django-push-notifications returned or raised as JSON."""

    help = "notify all active devices"

    def add_arguments(self, parser):
        parser.add_argument("text")
        parser.add_argument("--register", nargs="*", default=[], metavar="TOKEN", help="devices to register before")
        parser.add_argument("--one-by-one", action="store_true", help="one call per device, instead of one for all")

    def handle(self, *, text, register, one_by_one, **_):
        APNSDevice.objects.bulk_create(APNSDevice(registration_id=token) for token in register)
        everyone = APNSDevice.objects.all()
        calls = [APNSDevice.objects.filter(pk=one.pk) for one in everyone] if one_by_one else [everyone]
        results = []
        for devices in calls:
            try:
                results += devices.send_message(text)
            except NotificationError as error:
                results.append({"error": error.message})
        print(json.dumps(results))
