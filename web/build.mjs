// Makes the files of third-party code that pages load: one ES module for each entry of vendored/, the licences
// of what is in them, and a manifest with versions and hashes. The same lock file gives the same bytes.
//
//   npm ci && npm run build [-- DIRECTORY]

import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const committed = join(here, "../plugins/collidium_plugins/webapps/static/vendor");
const target = resolve(process.argv[2] ?? committed);

/** Names of the packages whose code went into an output of esbuild. */
function packagesOf(inputs) {
  const names = Object.keys(inputs).map((path) => path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1]);
  return [...new Set(names.filter(Boolean))].sort();
}

async function described(name) {
  const root = join(here, "node_modules", name);
  const { version, license } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const file = (await readdir(root)).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file) throw new Error(`${name} ships no licence: it cannot be vendored`);
  return { name, version, license, text: (await readFile(join(root, file), "utf8")).trim() };
}

async function bundled(entry) {
  const result = await build({
    absWorkingDir: here,
    entryPoints: [join("vendored", entry)],
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: "esm",
    target: "es2022",
    charset: "utf8",
    legalComments: "none", // licences.txt has them whole
  });
  const packages = await Promise.all(packagesOf(result.metafile.inputs).map(described));
  const credits = packages.map(({ name, version, license }) => `${name} ${version} (${license})`).join(", ");
  return { packages, code: `/*! ${credits}; see licences.txt */\n${result.outputFiles[0].text}` };
}

await mkdir(target, { recursive: true });
const manifest = {};
const licences = new Map();
const entries = (await readdir(join(here, "vendored"))).sort();
for (const entry of entries) {
  const { packages, code } = await bundled(entry);
  const file = entry.replace(/\.mjs$/, ".js");
  await writeFile(join(target, file), code);
  manifest[file] = {
    packages: Object.fromEntries(packages.map(({ name, version }) => [name, version])),
    sha256: createHash("sha256").update(code).digest("hex"),
  };
  for (const { name, version, license, text } of packages) licences.set(name, `${name} ${version} (${license})\n\n${text}\n`);
}
const sources = createHash("sha256");
for (const name of ["build.mjs", "package-lock.json", "package.json", ...entries.map((entry) => join("vendored", entry))])
  sources.update(await readFile(join(here, name)));
await writeFile(join(target, "sources.sha256"), `${sources.digest("hex")}\n`);
await writeFile(join(target, "licences.txt"), [...licences.values()].join(`\n${"-".repeat(80)}\n\n`));
await writeFile(join(target, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
