import { existsSync } from 'node:fs';
import { mapConcurrently } from '../../../src/runtime/async.ts';
import { EXIT, CommandFailure, TooLate, type ExitCode } from '../failure.ts';
import { show, tableOf, type Output } from '../output.ts';
import { ask, taken, type CliTarget } from '../target.ts';
import { deploymentFindings, diskFinding, type DoctorFinding } from './deployment-checks.ts';

const PROVIDERS_AT_ONCE = 6;

/** Timeout of a provider's list of models. */
const PROVIDER_WAIT_MS = 10_000;

/** Timeout of the test call, including its wait in the queue. */
const CALL_WAIT_MS = 60_000;

/** The detail is the last column, so it may be longer than other cells. */
const DETAIL_LENGTH_MAX = 300;

/** Default data folder of `headgate serve`. */
const DATA_FOLDER = '.headgate';

/** First words of faults on the start page, as in `http/own-routes.ts`. */
const IS_MISSING = /^(?:MISSING|UNUSABLE|DISABLED|UNREACHABLE)/;

export interface DoctorOptions {
  /** Model of the test call, which requests one token. Absent: no test call. */
  readonly model?: string;
  /** Checks every built-in provider instead of the configured ones only. */
  readonly all: boolean;
  /** Gateway key of the calls. null sends them without one. */
  readonly key: string | null;
  /** Data folder of a local Headgate. Absent: the default folder, if it exists and the URL names this machine. */
  readonly data?: string;
  /** Release of this command. */
  readonly release: string;
}

/** Checks a deployment: its set-up, its state, its providers, and one call. */
export async function doctor(
  target: CliTarget,
  output: Output,
  options: DoctorOptions,
): Promise<ExitCode> {
  const setUp = await setUpFindings(target.url);
  const session = await tokenFinding(target);
  const inside =
    session.result === 'ok'
      ? [
          ...(await deploymentFindings(target, options.release)),
          ...(await providerFindings(target, options)),
        ]
      : ['group state', 'providers'].map(needsToken);
  const disk = await diskFinding(folderOf(target.url, options.data));
  const findings = [...setUp, session, ...inside, disk, await callFinding(target.url, options)];
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

/** Returns the data folder to check. null means that Headgate runs elsewhere, or without a data folder here. */
function folderOf(url: string, data: string | undefined): string | null {
  if (data !== undefined) return data;
  const isHere = ['localhost', '127.0.0.1', '[::1]'].includes(new URL(url).hostname);
  return isHere && existsSync(DATA_FOLDER) ? DATA_FOLDER : null;
}

/** Reads the start page, which needs no token. */
async function setUpFindings(url: string): Promise<DoctorFinding[]> {
  const response = await ask(`${url}/`);
  const page = await response.text();
  const [, list] = page.split('\nSet up:\n');
  if (list === undefined) {
    throw new CommandFailure(
      EXIT.unreachable,
      `The server at ${url} is not Headgate. Check the URL.`,
    );
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

async function tokenFinding({ admin, token }: CliTarget): Promise<DoctorFinding> {
  const check = 'token';
  if (token === null) {
    return { check, result: 'skipped', detail: 'no token. Set HEADGATE_TOKEN to run all checks' };
  }
  const answer = await admin('GET /session');
  if (!answer.ok) return { check, result: 'failed', detail: `rejected with ${answer.status}` };
  const { actor, role } = taken(answer);
  return { check, result: 'ok', detail: `${actor}, role ${role}` };
}

const NEEDS_KEY = 'needs a gateway key. Set HEADGATE_KEY to check it';

interface DoctorTarget {
  readonly id: string;
  readonly url: string;
}

/** Requests each provider's list of models, which is free. Any response shows that Headgate reaches the provider. */
async function providerFindings(
  target: CliTarget,
  options: DoctorOptions,
): Promise<DoctorFinding[]> {
  const { upstreams } = taken(await target.admin('GET /upstreams', { query: { limit: 1_000 } }));
  const findings: DoctorFinding[] = [];
  const providers: DoctorTarget[] = [];
  for (const each of upstreams) {
    const isUsed = each.configured !== null || each.secret !== null || each.groups.length > 0;
    if (!each.enabled || !(isUsed || options.all)) continue;
    if (each.secret !== null && each.secret.fault !== null) {
      const { name, fault, set_with: how } = each.secret;
      findings.push({
        check: each.id,
        result: 'missing',
        detail: `the secret \`${name}\` ${fault}. Set it: ${how}`,
      });
    }
    if (each.secret !== null && options.key === null) {
      // A request without a key would count as a refused call, and the next run would report it.
      findings.push({ check: each.id, result: 'skipped', detail: NEEDS_KEY });
      continue;
    }
    const at = each.openai_at ?? each.anthropic_at;
    if (at !== null) providers.push({ id: each.id, url: `${target.url}/${each.id}${at}/models` });
  }
  if (providers.length === 0 && findings.length === 0) {
    return [
      {
        check: 'providers',
        result: 'skipped',
        detail: 'none configured. Use --all to check all built-in providers',
      },
    ];
  }
  return [
    ...findings,
    ...(await mapConcurrently(providers, PROVIDERS_AT_ONCE, (provider) =>
      checkProvider(provider, options.key),
    )),
  ];
}

/** Headers that both OpenAI and Anthropic routes accept. */
const headersOf = (key: string | null): Record<string, string> => ({
  'anthropic-version': '2023-06-01',
  ...(key === null ? {} : { authorization: `Bearer ${key}` }),
});

async function checkProvider(
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
      const what = reason === 'upstream_unreachable' ? 'cannot reach it' : 'rejected the request';
      return { check, result: 'failed', detail: `Headgate ${what} (${reason})` };
    }
    const { status } = response;
    const needsKey = status === 401 || status === 403;
    const took = `in ${ms} ms`;
    const isPage = response.headers.get('content-type')?.includes('text/html') === true;
    if (isPage && status < 400) {
      const detail = `returned ${status} ${took} with a web page instead of a list of models. Check \`base_url\``;
      return { check, result: 'failed', detail };
    }
    if (status === 404) {
      const detail = `returned 404 ${took}. It has no list of models, or \`base_url\` is wrong`;
      return { check, result: 'ok', detail };
    }
    const detail = `returned ${status} ${took}${needsKey && key === null ? ' because it requires a key' : ''}`;
    const isWell = status < 400 || (needsKey && key === null);
    return { check, result: isWell ? 'ok' : 'failed', detail };
  } catch (error) {
    return { check, result: 'failed', detail: silence(error, PROVIDER_WAIT_MS) };
  }
}

/** Describes a request without a response. A timeout may be due to the provider or to the queue. */
const silence = (error: unknown, waitMs: number): string =>
  error instanceof TooLate ? `no response within ${waitMs / 1_000} s` : (error as Error).message;

/** Makes one call for one token if a model is named. It is the only check that may cost money. */
async function callFinding(url: string, { model, key }: DoctorOptions): Promise<DoctorFinding> {
  const check = 'test call';
  if (model === undefined) {
    return { check, result: 'skipped', detail: 'set --model to make one. It may cost one token' };
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

function callEnd(response: Response, ms: number): DoctorFinding {
  const reason = response.headers.get('headgate-reason');
  const groups = response.headers.get('headgate-groups');
  const by = reason === null ? 'the provider returned' : `Headgate rejected it (${reason}) with`;
  const where = groups === null ? '' : `, groups ${groups}`;
  return {
    check: 'test call',
    result: response.ok ? 'ok' : 'failed',
    detail: `${by} ${response.status} in ${ms} ms${where}`,
  };
}
