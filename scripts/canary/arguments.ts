import { parseArgs } from 'node:util';
import * as z from 'zod';
import { SEEN_IN_ARGUMENTS, secretOf, tokenIn } from '../cli/target.ts';
import type { Need } from './check.ts';
import { CHECKS } from './checks.ts';
import { CheckNotPossible } from './upstream-use.ts';

/** Returns the help. `program` is the command by which it was called. */
export const usageOf = (program: string): string => `Usage: ${program} --url URL [options]

  --url URL            URL of the deployment, such as https://headgate.example.workers.dev
  --token-file FILE    file with the ADMIN_TOKEN or an admin key with the role admin; - for standard input
  --only A,B           only these checks: ${CHECKS.map(({ id }) => id).join(', ')}
  --dry-run            print the plan and send no request
  --json FILE          also write the report as JSON
  --load F             fraction of the default load, 0.01 to 1 (default 1)
  --waits-s 60,300     waits of the checks silence and upload, in seconds (default 60)
  --long               longer checks: waits of up to 10 minutes, 12 minutes of the feed, 1 hour of isolates
  --allow-load         allow overload and memory, which send thousands of calls
  --upstream ID        also call this upstream, which costs money; requires --model NAME and --allow-spend
  --model NAME         model of the calls to the upstream
  --allow-spend        allow calls that cost money
  --during-deploy      keep up a load while you deploy

Environment:
  HEADGATE_TOKEN       the token, if no file is named (default: the variable ADMIN_TOKEN)
  HEADGATE_KEY         a gateway key, if the deployment requires one
  PROVIDER_KEY         the provider key for the upstream, if the operator's key is not used

None of these values is ever printed.`;

const ids = CHECKS.map(({ id }) => id);

const LOAD = 'expected a number from 0.01 to 1';

const numbers = z
  .string()
  .transform((text) => text.split(',').map(Number))
  .pipe(z.array(z.number().positive().max(3_600)).min(1));

const argumentsSchema = z
  .object({
    url: z
      .url({ protocol: /^https?$/, error: 'expected the http or https URL of a deployment' })
      .transform((text) => new URL(text).origin),
    token: z
      .string({ error: 'expected --token-file FILE, or HEADGATE_TOKEN in the environment' })
      .min(1),
    only: z
      .string()
      .transform((text) => text.split(','))
      .pipe(z.array(z.enum(ids, { error: `expected one or more of ${ids.join(', ')}` })))
      .nullable(),
    dryRun: z.boolean(),
    json: z.string().nullable(),
    load: z.coerce.number({ error: LOAD }).min(0.01, LOAD).max(1, LOAD),
    waitsS: numbers.nullable(),
    long: z.boolean(),
    allowLoad: z.boolean(),
    allowSpend: z.boolean(),
    duringDeploy: z.boolean(),
    upstream: z.string().nullable(),
    model: z.string().nullable(),
    gatewayKey: z.string().startsWith('hg_').nullable(),
    providerKey: z.string().nullable(),
  })
  .superRefine((given, context) => {
    if (given.upstream === null) return;
    if (given.model === null) {
      context.addIssue({ code: 'custom', path: ['model'], message: 'required with --upstream' });
    }
    if (!given.allowSpend) {
      const message = 'required with --upstream, because its calls cost money';
      context.addIssue({ code: 'custom', path: ['allowSpend'], message });
    }
  });

export type CanaryArguments = z.output<typeof argumentsSchema>;

const flag = { type: 'boolean', default: false } as const;
const text = { type: 'string' } as const;

/** Command-line names of options, where they differ from the field. */
const OPTION: Readonly<Record<string, string>> = {
  dryRun: 'dry-run',
  waitsS: 'waits-s',
  allowLoad: 'allow-load',
  allowSpend: 'allow-spend',
  duringDeploy: 'during-deploy',
  gatewayKey: 'HEADGATE_KEY',
};

/** Reads the command line. null requests the help. Throws `CheckNotPossible` for invalid options. */
export function readArguments(
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
  note: (text: string) => void = console.error,
): CanaryArguments | null {
  const values = optionsOf(argv);
  if (values.help) return null;
  if (values.token !== undefined) note(SEEN_IN_ARGUMENTS);
  const checked = argumentsSchema.safeParse({
    url: values.url,
    token:
      values.token ??
      fileToken(values['token-file'], note) ??
      secretIn(env, 'HEADGATE_TOKEN') ??
      secretIn(env, 'ADMIN_TOKEN') ??
      undefined,
    only: values.only ?? null,
    dryRun: values['dry-run'],
    json: values.json ?? null,
    load: values.load,
    waitsS: values['waits-s'] ?? null,
    long: values.long,
    allowLoad: values['allow-load'],
    allowSpend: values['allow-spend'],
    duringDeploy: values['during-deploy'],
    upstream: values.upstream ?? null,
    model: values.model ?? null,
    gatewayKey: secretIn(env, 'HEADGATE_KEY'),
    providerKey: secretIn(env, 'PROVIDER_KEY'),
  });
  if (checked.success) return checked.data;
  // The values are never repeated, because one of them is a token.
  const lines = checked.error.issues.map(({ path, message }) => {
    const name = String(path[0]);
    const option = OPTION[name] ?? name;
    return `${option === option.toUpperCase() ? option : `--${option}`}: ${message}`;
  });
  throw new CheckNotPossible(lines.join('\n'));
}

function secretIn(env: NodeJS.ProcessEnv, name: string): string | null {
  try {
    return secretOf(env, name);
  } catch (error) {
    throw new CheckNotPossible(error instanceof Error ? error.message : String(error));
  }
}

function fileToken(file: string | undefined, note: (text: string) => void): string | undefined {
  if (file === undefined) return undefined;
  try {
    return tokenIn(file, note);
  } catch (error) {
    throw new CheckNotPossible(error instanceof Error ? error.message : String(error));
  }
}

export const CANARY_OPTIONS = {
  url: text,
  token: text,
  'token-file': text,
  only: text,
  json: text,
  upstream: text,
  model: text,
  load: { ...text, default: '1' },
  'waits-s': text,
  'dry-run': flag,
  long: flag,
  help: flag,
  'allow-load': flag,
  'allow-spend': flag,
  'during-deploy': flag,
} as const;

function optionsOf(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: CANARY_OPTIONS }).values;
  } catch (error) {
    // The message would repeat the argument, which may be the token: npm removes options without a `--` before them.
    const { code } = error as { readonly code?: string };
    if (code === 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL') {
      throw new CheckNotPossible(
        'Unexpected argument. The command takes options only. With npm run canary, put -- before them.',
      );
    }
    throw new CheckNotPossible(error instanceof Error ? error.message : String(error));
  }
}

export function consentsOf(given: CanaryArguments): ReadonlySet<Need> {
  const consents: [Need, boolean][] = [
    ['load', given.allowLoad],
    ['upstream', given.upstream !== null],
    ['deploy', given.duringDeploy],
  ];
  return new Set(consents.flatMap(([need, isGiven]) => (isGiven ? [need] : [])));
}
