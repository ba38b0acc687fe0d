// Parts of a page that are asked for again until nothing more becomes of them: `data-live` is where.
// A part comes from the server as it stands on the page; `data-ended` on it says that this was the last time.
// Where `data-stream` names server-sent events, each one has the part asked for; without a stream, time does.

const PAUSE = 1000;
const LAST = 30000;
const ENDED = new Set(["completed", "failed", "cancelled"]);

class LivePart {
  constructor(part) {
    this.part = part;
    this.announcer = document.querySelector("[data-live-announcement]");
    this.trouble = document.querySelector("[data-live-trouble]");
    this.etag = null;
    this.pause = PAUSE;
    this.timer = null;
    this.stream = null;
    document.addEventListener("visibilitychange", () => this.wake());
    this.follow();
    this.rest();
  }

  get hasEnded() {
    return "ended" in this.part.dataset;
  }

  wake() {
    clearTimeout(this.timer);
    if (document.hidden) this.close(); // a browser has few connections for all of its tabs
    if (document.hidden || this.hasEnded) return;
    this.pause = PAUSE;
    this.follow();
    this.look();
  }

  follow() {
    const address = this.part.dataset.stream;
    if (!address || this.stream || document.hidden || this.hasEnded) return;
    this.stream = new EventSource(address);
    this.stream.onmessage = ({ data }) => {
      // The last event: the stream ends, and the part may still be on its way.
      if (ENDED.has(JSON.parse(data).state)) delete this.part.dataset.stream;
      this.look();
    };
    // It ends now and then, or there is none: meanwhile time does.
    this.stream.onerror = () => this.close();
  }

  close() {
    this.stream?.close();
    this.stream = null;
    this.rest();
  }

  rest() {
    clearTimeout(this.timer);
    if (!document.hidden && !this.hasEnded && !this.stream) this.timer = setTimeout(() => this.look(), this.pause);
  }

  async look() {
    try {
      const headers = this.etag ? { "If-None-Match": this.etag } : {};
      const answer = await fetch(this.part.dataset.live, { headers, cache: "no-store" });
      if (answer.status === 401) return this.sayEnded();
      if (!answer.ok && answer.status !== 304) throw new Error(`status ${answer.status}`);
      this.trouble.textContent = "";
      this.pause = PAUSE;
      this.follow();
      if (answer.status === 200) this.show(await answer.text(), answer.headers.get("ETag"));
    } catch {
      this.pause = Math.min(this.pause * 2, LAST);
      this.trouble.textContent = "The platform does not answer; what you see may be old. Trying again.";
    }
    this.rest();
  }

  show(text, etag) {
    const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("[data-live]");
    if (!fresh) throw new Error("not a part of this page");
    this.etag = etag;
    if (fresh.outerHTML === this.part.outerHTML) return;
    const announced = this.part.dataset.announcement;
    keepPlace(this.part, fresh);
    this.part = fresh;
    if (this.hasEnded) this.close();
    if (announced !== fresh.dataset.announcement) this.announcer.textContent = fresh.dataset.announcement;
  }

  sayEnded() {
    const link = document.createElement("a");
    link.href = `/web/sign-in?next=${encodeURIComponent(location.pathname)}`;
    link.textContent = "Sign in again";
    this.trouble.replaceChildren("Your session has ended, so this is not followed any more. ", link, ".");
  }
}

// Puts one part in another's place, with what had the focus and what was unfolded.
function keepPlace(old, fresh) {
  const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
  for (const unfolded of old.querySelectorAll("details[open][id]")) {
    fresh.querySelector(`#${unfolded.id}`)?.setAttribute("open", "");
  }
  old.replaceWith(fresh);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

document.querySelectorAll("[data-live]").forEach((part) => new LivePart(part));
