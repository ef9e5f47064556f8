from django.core.management.base import BaseCommand
from django_walletpass.models import Pass, Registration


class Command(BaseCommand):
    """Saves every pass. django-walletpass then notifies the devices registered for it."""

    help = "notify the devices of all passes"

    def add_arguments(self, parser):
        parser.add_argument("--register", nargs="*", default=[], metavar="TOKEN", help="devices to register before")

    def handle(self, *, register, **_):
        coupon, _ = Pass.objects.get_or_create(
            pass_type_identifier="pass.com.example.coupon", serial_number="1", authentication_token="of a test")
        Registration.objects.bulk_create(
            Registration(device_library_identifier=token[:8], push_token=token, pazz=coupon) for token in register)
        for one in Pass.objects.all():
            one.save()
