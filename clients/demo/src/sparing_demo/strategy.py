"""The choice of the next area: a plan that uses only public titles and answers already released.

The plan can be said in three sentences. The 294 areas fall into a dozen topics by the words of their titles. The
analyst first scouts each topic once, by its area with the shortest address, because important areas tend to have short
addresses. From then on the next query goes to the topic whose latest three answers were highest on average, so that a
topic with low answers moves to the end of the queue.

The ids of the areas would predict better: low ids have many visits, as if ids had been given in the order in which
areas first appeared in the log. That was learned from the data and is not public, so the plan does not use ids.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean

from sparing_demo.dataset import Area

MEMORY = 3  # number of a topic's answers that count; with more, one popular area could carry many empty ones

# An area belongs to the first topic with a word of its title or its address.
TOPICS: dict[str, frozenset[str]] = {
    topic: frozenset(words.split())
    for topic, words in {
        "front page": "downloads search products catalog knowledge",
        "windows": "windows windows95 ntserver ntworkstation hardware",
        "countries": """
            argentina australia belgium benelux brazil canada caribbean central chile china colombia czech denmark
            europe finland france germany holland hong hungary india ireland israel italy korea latin mexico middle
            norway peru poland portugal russia slovakia slovenija south spain sweden switzerland taiwan thailand
            turkey uk uruguay us venezuela worldwide zealand""",
        "support": "support supprt supportnet",
        "developers": """
            controls data developer developers developr development fortran mdn mdsn msdn odbc ole repository source
            vba vbscript vbscripts visual""",
        "learning": "college education educational higer institute k mastering training",
        "servers": "backoffice exchange iis nt proxy server sna sql systems technet transaction",
        "office": """
            access clip excel imagecomposer mail money office outlook powerpoint project publisher schedule
            teammanager word works""",
        "internet": """
            activex frontpage ie ie3 ie40 interactive internet intranet isp java javascript jscript netmeeting netshow
            security site sitebuilder vrml""",
        "at home": """
            automap bookshelf cinemainia encarta games garden golf home kids music picture sidewalk sidewinder sports
            tv wine""",
        "company": """
            advertising business channel community corporate corporation financial industry investor job jobs licenses
            magazine marketing news partner piracy press purchasing sales solution solutions usability""",
    }.items()
}
OTHER = "everything else"


class Chooser:
    """The choice of the next area from the answers so far. Every area comes exactly once."""

    def __init__(self, areas: Iterable[Area]) -> None:
        """Sort the areas into their topics, short addresses first."""
        self._waiting: dict[str, list[Area]] = {topic: [] for topic in (*TOPICS, OTHER)}
        for area in sorted(areas, key=lambda area: (len(area.path), area.path)):
            self._waiting[topic_of(area)].append(area)
        self._answers: defaultdict[str, list[float]] = defaultdict(list)

    def next_area(self) -> Area | None:
        """The most promising area that was not asked about yet; None if there is none left."""
        open_topics = [topic for topic, areas in self._waiting.items() if areas]
        unscouted = [topic for topic in open_topics if topic not in self._answers]
        if not open_topics:
            return None
        topic = unscouted[0] if unscouted else max(open_topics, key=self._promise)
        return self._waiting[topic].pop(0)

    def learn(self, area: Area, answer: float) -> None:
        """Record a released answer."""
        self._answers[topic_of(area)].append(answer)

    def _promise(self, topic: str) -> float:
        return fmean(self._answers[topic][-MEMORY:])


def topic_of(area: Area) -> str:
    """The topic of an area, by the words of its title and its address."""
    words = set(re.findall(r"[a-z]+\d*", f"{area.title} {area.path}".lower()))
    return next((topic for topic, known in TOPICS.items() if words & known), OTHER)
