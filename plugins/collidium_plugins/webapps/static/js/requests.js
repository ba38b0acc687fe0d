// Parts of a page that are updated until they are final. `data-live` is the URL of the part, which the server
// renders; `data-ended` marks it as final. With `data-stream`, each server-sent event triggers an update;
// without a stream, a timer does.

const PAUSE = 1000;
const MAX_PAUSE = 30000;
const ENDED = new Set(["completed", "scored", "failed", "cancelled"]);

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
    this.schedule();
  }

  get hasEnded() {
    return "ended" in this.part.dataset;
  }

  wake() {
    clearTimeout(this.timer);
    if (document.hidden) this.close(); // browsers limit the connections of all tabs
    if (document.hidden || this.hasEnded) return;
    this.pause = PAUSE;
    this.follow();
    this.update();
  }

  follow() {
    const address = this.part.dataset.stream;
    if (!address || this.stream || document.hidden || this.hasEnded) return;
    this.stream = new EventSource(address);
    this.stream.onmessage = ({ data }) => {
      // The last event; the part may not be final yet.
      if (ENDED.has(JSON.parse(data).state)) delete this.part.dataset.stream;
      this.update();
    };
    // Without a stream, or when it breaks, the timer updates the part.
    this.stream.onerror = () => this.close();
  }

  close() {
    this.stream?.close();
    this.stream = null;
    this.schedule();
  }

  schedule() {
    clearTimeout(this.timer);
    if (!document.hidden && !this.hasEnded && !this.stream) this.timer = setTimeout(() => this.update(), this.pause);
  }

  async update() {
    try {
      const headers = this.etag ? { "If-None-Match": this.etag } : {};
      const answer = await fetch(this.part.dataset.live, { headers, cache: "no-store" });
      if (answer.status === 401) return this.showSessionEnded();
      if (!answer.ok && answer.status !== 304) throw new Error(`status ${answer.status}`);
      this.trouble.textContent = "";
      this.pause = PAUSE;
      this.follow();
      if (answer.status === 200) this.show(await answer.text(), answer.headers.get("ETag"));
    } catch {
      this.pause = Math.min(this.pause * 2, MAX_PAUSE);
      this.trouble.textContent = "The platform does not answer; what you see may be old. Trying again.";
    }
    this.schedule();
  }

  show(text, etag) {
    const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("[data-live]");
    if (!fresh) throw new Error("not a part of this page");
    this.etag = etag;
    if (fresh.outerHTML === this.part.outerHTML) return;
    const announced = this.part.dataset.announcement;
    replaceKeepingState(this.part, fresh);
    this.part = fresh;
    if (this.hasEnded) this.close();
    if (announced !== fresh.dataset.announcement) this.announcer.textContent = fresh.dataset.announcement;
  }

  showSessionEnded() {
    const link = document.createElement("a");
    link.href = `/web/sign-in?next=${encodeURIComponent(location.pathname)}`;
    link.textContent = "Sign in again";
    this.trouble.replaceChildren("Your session has ended, so this is not followed any more. ", link, ".");
  }
}

// Replaces a part and keeps the focus and open details.
function replaceKeepingState(old, fresh) {
  const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
  for (const unfolded of old.querySelectorAll("details[open][id]")) {
    fresh.querySelector(`#${unfolded.id}`)?.setAttribute("open", "");
  }
  old.replaceWith(fresh);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

document.querySelectorAll("[data-live]").forEach((part) => new LivePart(part));
