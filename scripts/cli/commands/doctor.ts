import { existsSync } from 'node:fs';
import { mapConcurrently } from '../../../src/runtime/map-concurrently.ts';
import { EXIT, CommandFailure, TooLate, type ExitCode } from '../failure.ts';
import { show, tableOf, type Output } from '../output.ts';
import { ask, taken, type CliTarget } from '../target.ts';
import { deploymentFindings, diskFinding, type DoctorFinding } from './deployment-checks.ts';

/** Maximum providers that are asked at a time. */
const PROVIDERS_AT_ONCE = 6;

/** How long a provider may take to say which models it has. */
const PROVIDER_WAIT_MS = 10_000;

/** How long the answer to the call may take, with its wait in the queue. */
const CALL_WAIT_MS = 60_000;

/** Maximum length of what is said of a finding: it stands last in its line. */
const DETAIL_LENGTH_MAX = 300;

/** The data folder of `headgate serve`, where none is named. */
const DATA_FOLDER = '.headgate';

/** Beginnings of what the first page says of something that is missing. */
const IS_MISSING = /^(?:MISSING|REFUSED|CLOSED|OUT OF REACH)/;

/** Choices of whoever asks a doctor. */
export interface DoctorOptions {
  /** A model to be called once for a token. */
  readonly model?: string;
  /** Asks every built-in provider, not those alone that are configured. */
  readonly all: boolean;
  /** The key of the calls; null: they are sent without one. */
  readonly key: string | null;
  /** The data folder of a Headgate on this machine. Absent: the default one, if it is there and the address is of this machine. */
  readonly data?: string;
  /** The release of this command. */
  readonly release: string;
}

/** Looks at a deployment: what is set up, what is missing, what its providers answer, one call. */
export async function doctor(
  target: CliTarget,
  output: Output,
  options: DoctorOptions,
): Promise<ExitCode> {
  const setUp = await setUpFindings(target.url);
  const who = await tokenFinding(target);
  const inside =
    who.result === 'ok'
      ? [
          ...(await deploymentFindings(target, options.release)),
          ...(await providerFindings(target, options)),
        ]
      : ['group state', 'providers'].map(needsToken);
  const disk = await diskFinding(folderOf(target.url, options.data));
  const findings = [...setUp, who, ...inside, disk, await callFinding(target.url, options)];
  const rows = findings.map(({ check, result, detail }) => [check, result, detail]);
  show(output, { url: target.url, findings }, () =>
    tableOf(['check', 'result', 'detail'], rows, DETAIL_LENGTH_MAX),
  );
  const isWell = findings.every(({ result }) => result === 'ok' || result === 'skipped');
  return isWell ? EXIT.ok : EXIT.no;
}

function needsToken(check: string): DoctorFinding {
  return { check, result: 'skipped', detail: 'needs a token' };
}

/** The data folder to look at. null: the Headgate runs elsewhere, or not by `headgate serve` in this folder. */
function folderOf(url: string, data: string | undefined): string | null {
  if (data !== undefined) return data;
  const isHere = ['localhost', '127.0.0.1', '[::1]'].includes(new URL(url).hostname);
  return isHere && existsSync(DATA_FOLDER) ? DATA_FOLDER : null;
}

/** Reads the first page, which needs no token. */
async function setUpFindings(url: string): Promise<DoctorFinding[]> {
  const response = await ask(`${url}/`);
  const page = await response.text();
  const [, list] = page.split('\nSet up:\n');
  if (list === undefined) {
    throw new CommandFailure(EXIT.unreachable, `What answers at ${url} is no Headgate.`);
  }
  const lines = list.split('\n').filter((line) => line.trim() !== '');
  return lines.map((line) => {
    const [, check = '', detail = ''] = /^ {2}(\S+(?: \S+)*) {2,}(.*)$/.exec(line) ?? [];
    return {
      check: check.toLowerCase(),
      result: IS_MISSING.test(detail) ? 'missing' : 'ok',
      detail,
    };
  });
}

/** Finds out as whom we ask. */
async function tokenFinding({ admin, token }: CliTarget): Promise<DoctorFinding> {
  const check = 'token';
  if (token === null) {
    return { check, result: 'skipped', detail: 'none given; set HEADGATE_TOKEN for the rest' };
  }
  const answer = await admin('getSession');
  if (!answer.ok) return { check, result: 'failed', detail: `refused with ${answer.status}` };
  const { actor, role } = taken(answer);
  return { check, result: 'ok', detail: `${actor}, role ${role}` };
}

/** Why a provider is not asked. */
const NEEDS_KEY = 'set HEADGATE_KEY to ask it with a gateway key';

interface DoctorTarget {
  readonly id: string;
  readonly url: string;
}

/** Asks each provider for its models, which costs nothing: that it answers at all shows the way to it. */
async function providerFindings(
  target: CliTarget,
  options: DoctorOptions,
): Promise<DoctorFinding[]> {
  const { upstreams } = taken(await target.admin('listUpstreams', { query: { limit: 1_000 } }));
  const findings: DoctorFinding[] = [];
  const places: DoctorTarget[] = [];
  for (const each of upstreams) {
    const isUsed = each.configured !== null || each.secret !== null || each.groups.length > 0;
    if (!each.enabled || !(isUsed || options.all)) continue;
    if (each.secret?.is_set === false) {
      const { name, fault, set_with: how } = each.secret;
      findings.push({
        check: each.id,
        result: 'missing',
        // Servers of older releases send no fault.
        detail: `the secret ${name} ${fault ?? 'is not set'}. ${how}`,
      });
    }
    if (each.secret !== null && options.key === null) {
      // Asked without a key, it would count as a refused call, which the next doctor finds.
      findings.push({ check: each.id, result: 'skipped', detail: NEEDS_KEY });
      continue;
    }
    const at = each.openai_at ?? each.anthropic_at;
    if (at !== null) places.push({ id: each.id, url: `${target.url}/${each.id}${at}/models` });
  }
  if (places.length === 0 && findings.length === 0) {
    return [{ check: 'providers', result: 'skipped', detail: 'none configured; --all asks each' }];
  }
  return [
    ...findings,
    ...(await mapConcurrently(places, PROVIDERS_AT_ONCE, (place) =>
      askProvider(place, options.key),
    )),
  ];
}

/** Headers of a call, with the key for providers of either shape. */
const headersOf = (key: string | null): Record<string, string> => ({
  'anthropic-version': '2023-06-01',
  ...(key === null ? {} : { authorization: `Bearer ${key}` }),
});

async function askProvider(
  { id: check, url }: DoctorTarget,
  key: string | null,
): Promise<DoctorFinding> {
  const startedAt = performance.now();
  try {
    const response = await ask(url, { headers: headersOf(key) }, PROVIDER_WAIT_MS);
    await response.body?.cancel();
    const ms = Math.round(performance.now() - startedAt);
    const reason = response.headers.get('headgate-reason');
    if (reason === 'key_missing' && key === null) {
      return { check, result: 'skipped', detail: NEEDS_KEY };
    }
    if (reason !== null) {
      const what = reason === 'upstream_unreachable' ? 'cannot reach it' : 'refused';
      return { check, result: 'failed', detail: `Headgate ${what} (${reason})` };
    }
    const { status } = response;
    const wantsKey = status === 401 || status === 403;
    const took = `in ${ms} ms`;
    const isPage = response.headers.get('content-type')?.includes('text/html') === true;
    if (isPage && status < 400) {
      const detail = `answers ${status} ${took} with a web page, not with a list of models: check base_url`;
      return { check, result: 'failed', detail };
    }
    if (status === 404) {
      const detail = `answers 404 ${took}: it has no list of models, or base_url is wrong`;
      return { check, result: 'ok', detail };
    }
    const detail = `answers ${status} ${took}${wantsKey && key === null ? ', and wants a key' : ''}`;
    const isWell = status < 400 || (wantsKey && key === null);
    return { check, result: isWell ? 'ok' : 'failed', detail };
  } catch (error) {
    return { check, result: 'failed', detail: silence(error, PROVIDER_WAIT_MS) };
  }
}

/** Words a request that was not answered: what was slow is the provider, or the queue before it. */
const silence = (error: unknown, waitMs: number): string =>
  error instanceof TooLate ? `no answer within ${waitMs / 1_000} s` : (error as Error).message;

/** Makes one call for one token, if a model was named: it is the only one that may cost. */
async function callFinding(url: string, { model, key }: DoctorOptions): Promise<DoctorFinding> {
  const check = 'test call';
  if (model === undefined) {
    return { check, result: 'skipped', detail: 'name a --model to make one; it may cost a token' };
  }
  const startedAt = performance.now();
  const request = {
    method: 'POST',
    headers: { ...headersOf(key), 'content-type': 'application/json' },
    body: JSON.stringify({
      model,
      max_completion_tokens: 1,
      messages: [{ role: 'user', content: 'Say ok.' }],
    }),
  };
  try {
    const response = await ask(`${url}/v1/chat/completions`, request, CALL_WAIT_MS);
    await response.body?.cancel();
    return callEnd(response, Math.round(performance.now() - startedAt));
  } catch (error) {
    return { check, result: 'failed', detail: silence(error, CALL_WAIT_MS) };
  }
}

/** Says how the call ended. */
function callEnd(response: Response, ms: number): DoctorFinding {
  const reason = response.headers.get('headgate-reason');
  const groups = response.headers.get('headgate-groups');
  const by = reason === null ? 'the provider answers' : `Headgate refused (${reason}) with`;
  const where = groups === null ? '' : `, groups ${groups}`;
  return {
    check: 'test call',
    result: response.ok ? 'ok' : 'failed',
    detail: `${by} ${response.status} in ${ms} ms${where}`,
  };
}
