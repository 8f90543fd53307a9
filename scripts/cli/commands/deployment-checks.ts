import { constants } from 'node:fs';
import { access, stat, statfs } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Attention } from '../../../src/contract/attention.ts';
import type { AttentionRule } from '../../../src/contract/attention-rules.ts';
import { plural, spanWords } from '../../../src/core/words/figures.ts';
import { taken, type CliTarget } from '../target.ts';

/** One thing that a doctor looked at. */
export interface DoctorFinding {
  readonly check: string;
  readonly result: 'ok' | 'missing' | 'failed' | 'skipped';
  readonly detail: string;
}

/** Maximum difference between the clocks: signatures of webhooks are refused beyond 5 minutes, and times in lists mislead before. */
const SKEW_MS_MAX = 5_000;

/** Minimum room on the disk of a data folder, in bytes. */
const ROOM_BYTES_MIN = 256 * 1024 * 1024;

/** Entries of the list that are shown one by one. */
const SHOWN_MAX = 20;

/** Checks that the list of what needs a person is divided into. */
const CHECKS = ['group state', 'refused calls', 'secrets', 'warnings'] as const;

const CHECK_OF: Partial<Record<AttentionRule, (typeof CHECKS)[number]>> = {
  price_missing: 'refused calls',
  key_refused: 'refused calls',
  model_refused: 'refused calls',
  calls_refused: 'refused calls',
  secret_missing: 'secrets',
  config_warning: 'warnings',
};

const WELL: Readonly<Record<(typeof CHECKS)[number], string>> = {
  'group state': 'no group needs attention',
  'refused calls': 'none in the last 10 minutes that an operator can mend',
  secrets: 'all secrets that the configuration names are set',
  warnings: 'no warning of the configuration',
};

/** Reads what needs a person, and compares the clocks and the versions by the same answer. */
export async function deploymentFindings(
  target: CliTarget,
  release: string,
): Promise<DoctorFinding[]> {
  const askedAt = Date.now();
  const answer = await target.admin('getAttention', {});
  const tookMs = Date.now() - askedAt;
  if (!answer.ok && answer.status === 404) {
    const detail = 'the server is of an older release, which does not find it';
    return [{ check: 'attention', result: 'skipped', detail }];
  }
  const { at, version, attention, left_out: leftOut } = taken(answer);
  return [
    ...attentionFindings(attention, leftOut),
    clockFinding(Date.parse(at) - (askedAt + tookMs / 2), tookMs),
    await versionFinding(target, release, version),
  ];
}

function attentionFindings(all: readonly Attention[], leftOut: number): DoctorFinding[] {
  return CHECKS.flatMap((check): DoctorFinding[] => {
    const entries = all.filter(({ rule }) => (CHECK_OF[rule] ?? 'group state') === check);
    if (entries.length === 0) return [{ check, result: 'ok', detail: WELL[check] }];
    const shown = entries.slice(0, SHOWN_MAX).map((one): DoctorFinding => ({
      check: `${check}: ${one.subject.id}`,
      result: one.rule === 'secret_missing' ? 'missing' : 'failed',
      detail: `${one.rule}: ${one.says} ${one.advice}`,
    }));
    const left = entries.length - shown.length + (check === 'group state' ? leftOut : 0);
    if (left === 0) return shown;
    const detail = `${plural(left, 'more entry', 'more entries')}: see headgate status --json`;
    return [...shown, { check, result: 'failed', detail }];
  });
}

/** Compares the clock of the deployment with the one here. What the request took is in doubt. */
function clockFinding(aheadMs: number, tookMs: number): DoctorFinding {
  const check = 'clock';
  const skewMs = Math.max(0, Math.abs(aheadMs) - tookMs / 2);
  if (skewMs <= SKEW_MS_MAX) {
    return { check, result: 'ok', detail: 'the deployment and this machine agree' };
  }
  const way = aheadMs > 0 ? 'ahead of' : 'behind';
  const detail = `the deployment is ${spanWords(skewMs)} ${way} this machine. Synchronize both with NTP`;
  return { check, result: 'failed', detail };
}

async function versionFinding(
  { admin }: CliTarget,
  release: string,
  version: number,
): Promise<DoctorFinding> {
  const check = 'versions';
  const answer = await admin('getIsolate', {});
  const theirs = answer.ok ? (answer.body.release ?? null) : null;
  const ofConfig = `configuration version ${version}`;
  if (theirs === release) {
    return { check, result: 'ok', detail: `Headgate ${release} here and there, ${ofConfig}` };
  }
  const there = theirs === null ? 'an older release' : `Headgate ${theirs}`;
  const detail = `this command is of Headgate ${release}, the server is ${there} (${ofConfig}). Install the same release for both`;
  return { check, result: 'failed', detail };
}

/** Checks the data folder of a Headgate that is hosted on this machine: that it can be written to, and has room. */
export async function diskFinding(folder: string | null): Promise<DoctorFinding> {
  const check = 'disk';
  if (folder === null) {
    return { check, result: 'skipped', detail: 'for headgate serve on this machine: --data DIR' };
  }
  const path = resolve(folder);
  try {
    const found = await stat(path);
    if (!found.isDirectory()) {
      return { check, result: 'failed', detail: `${path} is no folder. Name the one of serve` };
    }
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK);
    const { bavail, bsize } = await statfs(path);
    const free = bavail * bsize;
    const room = `${Math.floor(free / 1024 / 1024).toLocaleString('en')} MiB free`;
    if (free >= ROOM_BYTES_MIN) {
      return { check, result: 'ok', detail: `${path} can be written to, ${room}` };
    }
    return { check, result: 'failed', detail: `${path} has only ${room}. Make room on its disk` };
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    const detail = `${path} cannot be read and written (${code}). Name the folder of serve, and run this as its user`;
    return { check, result: 'failed', detail };
  }
}
