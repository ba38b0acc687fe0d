// The order form: updates the price, binds sliders to number fields, and prevents double orders.

import { inCredits } from "./credits.js";

const PAUSE = 200;
const form = document.getElementById("order-form");
const PARAMETERS = [...(form?.querySelectorAll("[data-priced]") ?? [])].map((field) => field.name);
if (form) {
  prepareSliders(form);
  preparePrice(form);
  sendOnce(form);
}

// -- price ------------------------------------------------------------------------------------------------------

function preparePrice(form) {
  const price = form.querySelector("#price");
  const trouble = form.querySelector("#price-trouble");
  const balance = form.dataset.balance === "" ? null : Number(form.dataset.balance);
  let timer = null;
  let asked = null;

  form.addEventListener("input", (event) => {
    if (!PARAMETERS.includes(event.target.name)) return;
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE);
  });

  async function ask() {
    asked?.abort();
    // The server has no price for values outside of its ranges.
    const parameters = PARAMETERS.map((name) => form.elements[name]);
    const wrong = parameters.filter((parameter) => !parameter.checkValidity());
    if (wrong.length) return showFaults(wrong.map((parameter) => ({ field: parameter.name, detail: parameter.validationMessage })));
    asked = new AbortController();
    const query = new URLSearchParams(parameters.map((parameter) => [parameter.name, parameter.value]));
    try {
      const base = document.body.dataset.api;
      const answer = await fetch(`${base}/v1/estimate?${query}`, { signal: asked.signal });
      const body = await answer.json();
      if (answer.ok) show(body.credits);
      else if (answer.status === 422) showFaults(body.errors ?? []);
      else throw new Error(`status ${answer.status}`);
      trouble.textContent = "";
    } catch (error) {
      if (error.name === "AbortError") return;
      showNoPrice();
      trouble.textContent = "The price is not available now.";
    }
  }

  function show(credits) {
    showFaults([]);
    price.textContent = inCredits(credits);
    if (balance === null) return;
    form.querySelector("[data-left]").textContent = inCredits(balance - credits);
    form.querySelector('[data-when="enough"]').hidden = balance < credits;
    form.querySelector('[data-when="dear"]').hidden = balance >= credits;
  }

  function showNoPrice() {
    price.textContent = "—";
    for (const hint of form.querySelectorAll("[data-when]")) hint.hidden = true;
  }

  function showFaults(faults) {
    const details = new Map(faults.map((fault) => [fault.field, fault.detail]));
    for (const name of PARAMETERS) {
      const fault = details.get(name) ?? "";
      form.querySelector(`[data-fault="${name}"]`).textContent = fault;
      if (fault) form.elements[name].setAttribute("aria-invalid", "true");
      else form.elements[name].removeAttribute("aria-invalid");
    }
    if (faults.length) showNoPrice();
  }
}

// -- sliders ----------------------------------------------------------------------------------------------------

function prepareSliders(form) {
  for (const slider of form.querySelectorAll("[data-of]")) {
    const number = form.elements[slider.dataset.of];
    const scale = scaleBetween(Number(number.min), Number(number.max));
    const follow = () => (slider.value = scale.place(Math.max(Number(number.value), Number(number.min))));
    slider.addEventListener("input", () => {
      number.value = scale.number(Number(slider.value));
      slider.setAttribute("aria-valuetext", number.value);
      number.dispatchEvent(new Event("input", { bubbles: true }));
    });
    number.addEventListener("input", (event) => event.isTrusted && follow());
    follow();
    slider.setAttribute("aria-valuetext", number.value);
    slider.hidden = false;
  }
}

// Converts numbers to slider positions from 0 to 1000; logarithmic for wide ranges.
function scaleBetween(minimum, maximum) {
  const isLong = minimum > 0 && maximum / minimum > 1000;
  return {
    place: (number) =>
      isLong ? (1000 * Math.log(number / minimum)) / Math.log(maximum / minimum) : (1000 * (number - minimum)) / (maximum - minimum),
    number: (place) => {
      const exact = isLong ? minimum * (maximum / minimum) ** (place / 1000) : minimum + ((maximum - minimum) * place) / 1000;
      return isLong ? Number(exact.toPrecision(2)) : Math.round(exact);
    },
  };
}

// -- sending ----------------------------------------------------------------------------------------------------

function sendOnce(form) {
  form.addEventListener("submit", (event) => {
    if (form.ariaBusy === "true") event.preventDefault();
    form.ariaBusy = "true";
    const button = form.querySelector("button.primary");
    if (button) button.textContent = "Ordering …";
  });
  // The browser's back button would show the form as it was left, still busy.
  addEventListener("pageshow", (event) => event.persisted && location.reload());
}
