# SQLAlchemy (Debian: python3-sqlalchemy and python3-psycopg2)

from sqlalchemy import BigInteger, Column, create_engine, func
from sqlalchemy.orm import Session, declarative_base

Base = declarative_base()


class Post(Base):
    __tablename__ = "posts"
    id = Column(BigInteger, primary_key=True)


class Hidden(Base):
    __tablename__ = "hidden_posts"
    user_id = Column(BigInteger, primary_key=True)
    post_id = Column(BigInteger, primary_key=True)


def feed(session):
    posts = session.query(Post).filter(~func.hidden_posts_has(7, Post.id)).order_by(Post.id.desc())
    return " ".join(str(post.id) for post in posts)


with Session(create_engine("postgresql://")) as session:
    session.add(Hidden(user_id=7, post_id=42))
    session.commit()
    print(feed(session))
    session.query(Hidden).filter_by(user_id=7, post_id=42).delete()
    session.commit()
    print(feed(session))
