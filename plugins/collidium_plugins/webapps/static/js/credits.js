// Formats amounts of credits.

export function inCredits(amount) {
  const number = amount.toLocaleString("en", { maximumFractionDigits: 3 });
  return `${number} ${amount === 1 ? "credit" : "credits"}`;
}
