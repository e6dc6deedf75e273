"""A small profile of a chat, in which one message may be told as two kinds of event, and a server of it. For tests."""

from __future__ import annotations

from hotplug.profile import Event, Extension, Model, Profile, Ref, event, extends, read

__all__ = ["Blocks", "Message", "MyTeam", "Team", "Topic", "Topics"]


class Message(Ref, kind="team.message"):
    """Something that was said."""


class Topic(Ref, kind="team.topic"):
    """What is talked about."""


class Topics(Model):
    topics: list[Topic]


class Team(Profile, name="team", version="1.0.0"):
    """Teams: people say something, and mention each other. For tests."""

    @read("team.topics", sense="state")
    async def topics(self) -> Topics:
        """List what is talked about."""
        ...

    @event("team.said", sense="state", replay="durable")
    class Said(Event):
        """Something was said."""

        message: Message
        text: str

        class Filter(Event.Filter):
            text: str | None = None

        def happening(self) -> str | None:
            """The message: being said and mentioning somebody is one happening."""
            return self.message

    @event("team.mentioned", sense="state", replay="durable")
    class Mentioned(Event):
        """Somebody was mentioned in what was said."""

        message: Message
        text: str
        who: str

        class Filter(Event.Filter):
            text: str | None = None
            who: str | None = None

        def happening(self) -> str | None:
            """As of what was said."""
            return self.message

    @event("team.typing", sense="signal", replay="live")
    class Typing(Event):
        """Somebody is typing."""

        who: str

    @event("team.noted", sense="state", replay="durable")
    class Noted(Event):
        """Somebody made a note; nothing in it says which."""

        text: str


class Blocks(Extension, id="com.example.blocks", version="1.0.0", requires={"team": "^1"}):
    """Messages have a form."""

    @extends("team.said")
    class Form(Model):
        """How it looks."""

        bold: bool | None = None
        about: Topic | None = None

    @extends("team.noted")
    class Note(Model):
        """Where it stands."""

        line: int | None = None


class MyTeam(Team, Blocks):
    """A server whose events are what a test emits."""

    title = "the team"
    instance = "team-1"

    async def topics(self) -> Topics:
        return Topics(topics=[Topic("tea")])
