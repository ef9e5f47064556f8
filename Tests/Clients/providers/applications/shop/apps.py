import os

from aioapns.connection import APNsDevelopmentClientProtocol
from django.apps import AppConfig


class Shop(AppConfig):
    """The application of the shop itself. Both libraries send with aioapns, for which neither has a setting of the
    host, so it is set here.
    """

    name = "shop"

    def ready(self):
        APNsDevelopmentClientProtocol.APNS_SERVER = os.environ["SHOP_APNS_HOST"]
        APNsDevelopmentClientProtocol.APNS_PORT = int(os.environ["SHOP_APNS_PORT"])
