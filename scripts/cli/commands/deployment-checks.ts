import { constants } from 'node:fs';
import { access, stat, statfs } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Attention } from '../../../src/contract/attention.ts';
import type { AttentionRule } from '../../../src/contract/status-words.ts';
import { plural, spanWords } from '../../../src/core/words/figures.ts';
import { taken, type CliTarget } from '../target.ts';

export interface DoctorFinding {
  readonly check: string;
  readonly result: 'ok' | 'missing' | 'failed' | 'skipped';
  readonly detail: string;
}

/**
 * Maximum difference between the clocks. Receivers reject webhook signatures beyond 5 minutes, and times in lists
 * mislead well before that.
 */
const SKEW_MS_MAX = 5_000;

/** Minimum free space on the disk of a data folder, in bytes. */
const ROOM_BYTES_MIN = 256 * 1024 * 1024;

/** Maximum attention entries of one check that are listed individually. */
const SHOWN_MAX = 20;

/** The attention list is split into these checks. */
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
  'refused calls': 'none in the last 10 minutes that require action',
  secrets: 'all secrets named in the configuration are set',
  warnings: 'the configuration has no warnings',
};

/** Reads the attention list. The same response supplies the clock and the configuration version. */
export async function deploymentFindings(
  target: CliTarget,
  release: string,
): Promise<DoctorFinding[]> {
  const sentAt = Date.now();
  const answer = await target.admin('GET /attention', {});
  const tookMs = Date.now() - sentAt;
  const { at, version, attention, left_out: leftOut } = taken(answer);
  return [
    ...attentionFindings(attention, leftOut),
    clockFinding(Date.parse(at) - (sentAt + tookMs / 2), tookMs),
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

/** Compares the clock of the deployment with the local one. The duration of the request is the margin of error. */
function clockFinding(aheadMs: number, tookMs: number): DoctorFinding {
  const check = 'clock';
  const skewMs = Math.max(0, Math.abs(aheadMs) - tookMs / 2);
  if (skewMs <= SKEW_MS_MAX) {
    return { check, result: 'ok', detail: 'the clocks of the deployment and this machine agree' };
  }
  const side = aheadMs > 0 ? 'ahead of' : 'behind';
  const detail = `the clock of the deployment is ${spanWords(skewMs)} ${side} this machine's. Synchronize both with NTP`;
  return { check, result: 'failed', detail };
}

async function versionFinding(
  { admin }: CliTarget,
  release: string,
  version: number,
): Promise<DoctorFinding> {
  const check = 'versions';
  const { release: served } = taken(await admin('GET /isolate', {}));
  const ofConfig = `configuration version ${version}`;
  if (served === release) {
    return { check, result: 'ok', detail: `Headgate ${release} on both sides, ${ofConfig}` };
  }
  const detail = `this command is Headgate ${release}, the server runs Headgate ${served} (${ofConfig}). Install the same release on both sides`;
  return { check, result: 'failed', detail };
}

/** Checks that the data folder of a local `headgate serve` is writable and has free space. */
export async function diskFinding(folder: string | null): Promise<DoctorFinding> {
  const check = 'disk';
  if (folder === null) {
    return {
      check,
      result: 'skipped',
      detail: 'only for headgate serve on this machine. Name its folder with --data',
    };
  }
  const path = resolve(folder);
  try {
    const found = await stat(path);
    if (!found.isDirectory()) {
      return {
        check,
        result: 'failed',
        detail: `${path} is not a folder. Name the data folder of headgate serve`,
      };
    }
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK);
    const { bavail, bsize } = await statfs(path);
    const free = bavail * bsize;
    const space = `${Math.floor(free / 1024 / 1024).toLocaleString('en')} MiB free`;
    if (free >= ROOM_BYTES_MIN) {
      return { check, result: 'ok', detail: `${path} is writable, ${space}` };
    }
    return { check, result: 'failed', detail: `${path} has only ${space}. Free up disk space` };
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    const detail = `${path} is not readable and writable (${code}). Name the data folder of headgate serve, and run this as the same user`;
    return { check, result: 'failed', detail };
  }
}
