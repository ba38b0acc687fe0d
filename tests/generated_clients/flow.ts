// What a program does with the client that is made from the OpenAPI document; prints what it saw as JSON.
import { readFile } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import createClient from "openapi-fetch";
import type { paths } from "./api.d.ts";

const [baseUrl, token, file] = process.argv.slice(2) as [string, string, string];
const api = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });

async function order(seed: number): Promise<string> {
  const { data, error } = await api.POST("/v1/simulate", { body: { preset: "ttbar-quick", seed } });
  if (error) throw new Error(error.detail);
  return data.request_id;
}

async function ended(request_id: string): Promise<string> {
  for (;;) {
    const { data, error } = await api.GET("/v1/requests/{request_id}", { params: { path: { request_id } } });
    if (error) throw new Error(error.detail);
    if (["completed", "failed", "cancelled"].includes(data.state)) return data.state;
    await setTimeout(200);
  }
}

const completed = await ended(await order(7));

const request_id = await order(8);
const { error: refusal } = await api.POST("/v1/requests/{request_id}/cancel", { params: { path: { request_id } } });
const cancelled = refusal ? refusal.detail : await ended(request_id);

const { data: receipt, error: problem } = await api.POST("/v1/benchmark/{task}/submit", {
  params: { path: { task: "tracking" } },
  headers: { "Content-Type": "application/octet-stream" },
  body: new Blob([await readFile(file)]) as unknown as string,
  bodySerializer: (body) => body,
});
if (problem) throw new Error(problem.detail);

const { data: event } = await api.GET("/v1/datasets/{config}/events/{event_id}", {
  params: { path: { config: "ttbar_pu0", event_id: "0" } },
  parseAs: "arrayBuffer" as const,
});

console.log(JSON.stringify({ completed, cancelled, scores: receipt.scores, bytes: event?.byteLength }));
