import assert from "node:assert/strict";
import { test } from "node:test";
import { COLOURS_APART, INK, qualitative, rgb } from "../../../../plugins/collidium_plugins/webapps/static/js/display/colours.js";

// How linear red, green and blue are seen without one kind of cones: G. M. Machado et al., IEEE TVCG 15 (2009) 1291.
const EYES = {
  usual: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanope: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranope: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanope: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
// OKLab: B. Ottosson, https://bottosson.github.io/posts/oklab/
const CONES = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]];
const LAB = [[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099], [0.0259040371, 0.7827717662, -0.808675766]];
const LUMINANCE = [0.2126, 0.7152, 0.0722];
// In OKLab, where black and white are 1 apart.
const LEAST_DISTANCE = 0.065;

const dot = (row, colour) => row.reduce((sum, weight, place) => sum + weight * colour[place], 0);
const times = (matrix, colour) => matrix.map((row) => dot(row, colour));
const linear = (hex) => rgb(hex).map((value) => (value <= 10 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
const lab = (colour) => times(LAB, times(CONES, colour).map((value) => Math.cbrt(Math.max(value, 0))));

function contrast(one, other) {
  const [lighter, darker] = [one, other].map((hex) => dot(LUMINANCE, linear(hex)) + 0.05).sort((a, b) => b - a);
  return lighter / darker;
}

for (const ground of ["dark", "light"]) {
  const { em, had, unknown, ground: paper } = INK[ground];
  const parts = Array.from({ length: COLOURS_APART }, (_, index) => qualitative(index, ground));
  const colours = [...parts, em, had, unknown];

  test(`each part of the detector has a colour on ${ground} ground`, () => assert.ok(new Set(parts).size >= 9));

  test(`parts and towers stand out from ${ground} ground`, () => {
    for (const colour of colours) assert.ok(contrast(colour, paper) >= 3, colour);
  });

  for (const [eye, matrix] of Object.entries(EYES)) {
    test(`parts and towers on ${ground} ground are distinct, as seen by: ${eye}`, () => {
      const seen = colours.map((colour) => lab(times(matrix, linear(colour))));
      for (let one = 0; one < seen.length; one += 1) {
        for (let other = 0; other < one; other += 1) {
          const distance = Math.hypot(...seen[one].map((value, axis) => value - seen[other][axis]));
          assert.ok(distance >= LEAST_DISTANCE, `${colours[one]} and ${colours[other]}: ${distance}`);
        }
      }
    });
  }
}
