// Upload of predictions. Checks size and magic bytes at once; the server checks the rest.
// Sends the file to /v1, or with the form to this page if /v1 is at another origin.

const MAGIC = "PAR1";
const MIN_BYTES = 12;
const IS_SAME_ORIGIN = document.body.dataset.api === "";
const NOTHING_SENT = "The connection broke before there was an answer. Check that you are online, and try again.";

function prepare(form) {
  const input = form.elements.predictions;
  const drop = form.querySelector(".drop");
  const stop = form.querySelector("#stop");
  const view = new View(form);
  let sending = null;

  input.addEventListener("change", () => checkFile());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const action = event.submitter?.value ?? "submit";
    if (sending || !(await checkFile())) return;
    sending = send(form, input.files[0], action, view);
    view.busy(true);
    await sending.done;
    sending = null;
    view.busy(false);
  });
  stop.addEventListener("click", () => sending?.stop());

  for (const kind of ["dragenter", "dragover"]) {
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.dataset.over = "";
    });
  }
  for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => delete drop.dataset.over);
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    if (sending || event.dataTransfer.files.length !== 1) return;
    input.files = event.dataTransfer.files;
    checkFile();
  });

  async function checkFile() {
    view.clear();
    const file = input.files[0];
    const trouble = file ? await problemWith(file, Number(form.dataset.largest)) : "Choose a file first.";
    view.showProblem(trouble);
    return trouble === "";
  }
}

// An early check; the server decides.
async function problemWith(file, largest) {
  if (largest && file.size > largest) {
    return `${file.name} has ${inBytes(file.size)}; at most ${inBytes(largest)} are taken for this task.`;
  }
  try {
    const ends = [file.slice(0, MAGIC.length), file.slice(Math.max(0, file.size - MAGIC.length))];
    const texts = await Promise.all(ends.map((end) => end.text()));
    if (file.size < MIN_BYTES || texts.some((text) => text !== MAGIC)) return `${file.name} is not a parquet file.`;
  } catch {
    return `${file.name} cannot be read. Choose it again.`;
  }
  return "";
}

function send(form, file, action, view) {
  const request = new XMLHttpRequest();
  if (IS_SAME_ORIGIN) {
    const model = action === "submit" ? form.elements.model_repo.value.trim() : "";
    const query = model ? `?${new URLSearchParams({ model_repo: model })}` : "";
    request.open("POST", `/v1/benchmark/${encodeURIComponent(form.dataset.task)}/${action}${query}`);
    request.setRequestHeader("Content-Type", "application/vnd.apache.parquet");
    request.setRequestHeader("X-CSRF-Token", document.body.dataset.csrf);
    request.setRequestHeader("Accept", "application/json");
  } else {
    request.open("POST", location.pathname);
  }
  request.upload.onprogress = (event) => view.sent(event.loaded, file.size);
  request.upload.onload = () => view.waits(action);
  const done = new Promise((resolve) => {
    request.onload = () => resolve(answered(form, request, action, view));
    request.onerror = () => resolve(view.refused({ detail: NOTHING_SENT }, action));
    request.onabort = () => resolve(view.report("Stopped. Nothing was kept."));
  });
  view.sent(0, file.size);
  request.send(IS_SAME_ORIGIN ? file : fields(form, action));
  return { done, stop: () => request.abort() };
}

function fields(form, action) {
  const data = new FormData(form);
  data.set("action", action);
  return data;
}

function answered(form, request, action, view) {
  if (request.status === 401) return view.sessionHasEnded();
  if (!IS_SAME_ORIGIN) return answeredByPage(request, action, view);
  let body;
  try {
    body = JSON.parse(request.responseText);
  } catch {
    return view.refused({ detail: `The platform answered ${request.status} with an unknown response.` }, action);
  }
  if (request.status !== 200) return view.refused(body, action, request.getResponseHeader("Retry-After"));
  if (action === "check") return view.checked(body);
  const receipt = new URLSearchParams({ receipt: body.submission_id, ...(body.deduplicated ? { again: "1" } : {}) });
  location.assign(`/leaderboard/${encodeURIComponent(form.dataset.task)}/submit?${receipt}`);
}

function answeredByPage(request, action, view) {
  if (new URL(request.responseURL).searchParams.has("receipt")) return location.assign(request.responseURL);
  const page = new DOMParser().parseFromString(request.responseText, "text/html");
  const notice = page.querySelector("main .notice");
  if (!notice) return view.refused({ detail: `The platform answered ${request.status}.` }, action);
  view.show(notice);
}

// -- output -----------------------------------------------------------------------------------------------------

class View {
  constructor(form) {
    this.form = form;
    this.progress = form.querySelector("progress");
    this.state = form.querySelector("#upload-state");
    this.outcome = form.querySelector("#outcome");
    this.trouble = form.querySelector("#file-trouble");
  }

  clear() {
    this.report("");
    this.outcome.replaceChildren();
  }

  report(text) {
    this.progress.hidden = true;
    this.state.textContent = text;
  }

  showProblem(text) {
    this.trouble.textContent = text;
    this.form.elements.predictions.toggleAttribute("aria-invalid", false);
    if (text) this.form.elements.predictions.setAttribute("aria-invalid", "true");
  }

  busy(isBusy) {
    for (const button of this.form.querySelectorAll("[name=action]")) button.disabled = isBusy;
    this.form.querySelector("#stop").hidden = !isBusy;
    this.form.elements.predictions.disabled = isBusy;
  }

  sent(bytes, size) {
    this.progress.hidden = false;
    this.progress.value = size ? bytes / size : 0;
    // In steps of 10 %, as screen readers read out each change.
    const text = `Sending: ${Math.floor((10 * bytes) / (size || 1)) * 10} % of ${inBytes(size)}`;
    if (this.state.textContent !== text) this.state.textContent = text;
  }

  waits(action) {
    this.progress.removeAttribute("value");
    this.state.textContent = action === "check" ? "Sent; it is being checked." : "Sent; it is being scored.";
  }

  checked(body) {
    const rows = body.rows.toLocaleString("en");
    this.notice("good", "Good to submit", `The file has no problems in its ${rows} rows. Nothing was kept.`, body.warnings);
  }

  refused(problem, action, retryAfter = null) {
    const detail = problem.detail ?? "The platform gave no reason.";
    const isRepeated = problem.errors?.length && detail.includes(problem.errors[0].detail);
    const text = isRepeated ? "What is wrong with it:" : detail[0].toUpperCase() + detail.slice(1);
    const ofCheck = problem.errors?.length ? "The file has problems" : "Nothing was checked";
    const box = this.notice("bad", action === "check" ? ofCheck : "Nothing was submitted", text);
    if (/^\d+$/.test(retryAfter ?? "")) box.append(made("p", `Try again in ${inTime(Number(retryAfter))}.`));
    if (problem.errors?.length) box.append(listed(problem.errors));
  }

  sessionHasEnded() {
    const link = made("a", "Sign in again");
    const model = document.getElementById("model_repo").value;
    const page = location.pathname + (model && `?${new URLSearchParams({ model_repo: model })}`);
    link.href = `/web/sign-in?${new URLSearchParams({ next: page })}`;
    const text = "You come back to this page, and choose the file once more.";
    this.notice("warn", "Your session has ended", text).append(link);
  }

  show(box) {
    this.report("");
    this.outcome.replaceChildren(box);
  }

  notice(kind, title, text, more = []) {
    const box = made("div", made("strong", title), made("p", text), ...more.map((line) => made("p", line)));
    box.className = `notice ${kind}`;
    this.show(box);
    return box;
  }
}

// The list of problems, as in the template problems.html.
function listed(problems) {
  const list = made("ul", ...problems.map((problem) => made("li", ...described(problem))));
  list.className = "problems";
  return list;
}

function described({ field, column, event_id: event, detail, count, examples }) {
  const isNamed = [`${column} `, `column ${column} `].some((name) => detail.startsWith(name));
  const places = [field, column && !isNamed && `column ${column}`, Number.isInteger(event) && `event ${event}`].filter(Boolean);
  const parts = [...(places.length ? [made("strong", places.join(", ")), ": "] : []), detail];
  if (count > 1) parts.push(` (${count.toLocaleString("en")} rows)`);
  if (examples?.length) parts.push(made("ul", ...examples.map((row) => made("li", "for example ", made("code", asText(row))))));
  return parts;
}

function asText(row) {
  return Object.entries(row)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");
}

function made(name, ...children) {
  const element = document.createElement(name);
  element.append(...children);
  return element;
}

function inBytes(bytes) {
  const power = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), 4);
  const number = bytes / 1000 ** power;
  return `${number.toLocaleString("en", { maximumFractionDigits: number < 10 ? 1 : 0 })} ${["bytes", "kB", "MB", "GB", "TB"][power]}`;
}

function inTime(seconds) {
  if (seconds < 120) return `${seconds} seconds`;
  return seconds < 7200 ? `${Math.ceil(seconds / 60)} minutes` : `${Math.ceil(seconds / 3600)} hours`;
}

const form = document.getElementById("upload-form");
if (form) prepare(form);
