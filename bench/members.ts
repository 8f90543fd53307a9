/**
 * Simulates several keys with one queue before them, beside a queue before each: how long calls wait at growing load,
 * and how many stay at the key of their agent. The core decides as it does in an object; the clock is virtual, so the
 * figures are the same on every machine. `--plot FILE`: draws the waits as an SVG.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { parse, View } from 'vega';
import { compile } from 'vega-lite';
import {
  percentile,
  simulate,
  WAYS,
  type SeveralKeysPath,
} from '../test/model/simulator/several-keys.ts';
import { percent, printTable } from './support/report.ts';

const LOADS = [0.5, 0.6, 0.7, 0.8, 0.9];

const SEEDS = [1, 2, 3, 4, 5];

/** Four keys with four slots each; calls of three seconds on average that differ as answers of models do. */
const SITE = { keys: 4, slotsEach: 4, agents: 100, serviceMs: 3_000, variation: 1, calls: 20_000 };

interface MembersPoint {
  readonly way: SeveralKeysPath;
  readonly load: number;
  /** Waits in seconds, and shares, each the median over the seeds. */
  readonly p50: number;
  readonly p95: number;
  readonly kept: number;
}

function pointOf(way: SeveralKeysPath, load: number): MembersPoint {
  const runs = SEEDS.map((seed) => simulate({ ...SITE, way, load, seed }));
  const secondsAt = (part: number) => median(runs.map((run) => percentile(run, part))) / 1_000;
  const kept = median(runs.map(({ keptShare }) => keptShare));
  return { way, load, p50: secondsAt(0.5), p95: secondsAt(0.95), kept };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

/** Draws the waits of the 95th part by load, one line a way. */
async function plot(points: readonly MembersPoint[]): Promise<string> {
  const { spec } = compile({
    width: 520,
    height: 280,
    background: 'white',
    data: { values: [...points] },
    mark: { type: 'line', point: true },
    encoding: {
      x: {
        field: 'load',
        type: 'quantitative',
        axis: { format: '%' },
        title: 'load',
        scale: { zero: false },
      },
      y: { field: 'p95', type: 'quantitative', title: 'wait that 95 % do not exceed, in seconds' },
      color: { field: 'way', type: 'nominal', title: null, sort: [...WAYS] },
    },
  });
  return new View(parse(spec), { renderer: 'none' }).toSVG();
}

const { values } = parseArgs({ options: { plot: { type: 'string' } } });
const points = LOADS.flatMap((load) => WAYS.map((way) => pointOf(way, load)));
printTable([
  ['load, way', 'p50', 'p95', 'kept their key'],
  ...points.map(({ way, load, p50, p95, kept }) => [
    `${percent(load)} ${way}`,
    `${p50.toFixed(2)} s`,
    `${p95.toFixed(2)} s`,
    percent(kept),
  ]),
]);
if (values.plot !== undefined) writeFileSync(values.plot, await plot(points));
