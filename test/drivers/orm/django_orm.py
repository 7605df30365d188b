# Django (Debian: python3-django and python3-psycopg2)

import os

import django
from django.conf import settings
from django.db import models

settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": os.environ["PGDATABASE"],
            "USER": os.environ["PGUSER"],
            "PASSWORD": os.environ["PGPASSWORD"],
            "HOST": os.environ["PGHOST"],
            "PORT": os.environ["PGPORT"],
        }
    },
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()


class Has(models.Func):
    function = "hidden_posts_has"
    output_field = models.BooleanField()


class Post(models.Model):
    id = models.BigIntegerField(primary_key=True)

    class Meta:
        app_label = "feed"
        db_table = "posts"


class Hidden(models.Model):
    user_id = models.BigIntegerField(primary_key=True)
    post_id = models.BigIntegerField()

    class Meta:
        app_label = "feed"
        db_table = "hidden_posts"


def feed():
    posts = Post.objects.alias(hidden=Has(7, "id")).filter(hidden=False).order_by("-id")
    return " ".join(str(post.id) for post in posts)


Hidden.objects.bulk_create([Hidden(user_id=7, post_id=42)])
print(feed())
Hidden.objects.filter(user_id=7, post_id=42).delete()
print(feed())
