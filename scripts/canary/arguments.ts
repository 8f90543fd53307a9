import { parseArgs } from 'node:util';
import * as z from 'zod';
import { SEEN_IN_ARGUMENTS, secretOf, tokenIn } from '../cli/target.ts';
import type { Need } from './check.ts';
import { CHECKS } from './checks.ts';
import { CheckNotPossible } from './upstream-use.ts';

/** Writes the help; `program` is how it was called. */
export const usageOf = (program: string): string => `Usage: ${program} --url URL [options]

  --url URL            a deployment of Headgate, as in https://headgate.example.workers.dev
  --token-file FILE    file with its ADMIN_TOKEN, or an admin key of role admin; - for standard input
  --only A,B           only these checks: ${CHECKS.map(({ id }) => id).join(', ')}
  --dry-run            tells what would be done, and asks nobody anything
  --json FILE          writes the report as JSON too
  --load F             part of the usual load, 0.01 to 1 (default 1)
  --waits-s 60,300     waits of the checks silence and upload, in seconds (default 60)
  --long               minutes of silence, 12 minutes of the feed, an hour of isolates
  --allow-load         consents to overload and memory, which send thousands of calls
  --upstream ID        an upstream to which calls may go; with --model NAME, and --allow-spend: they cost money
  --during-deploy      keeps up a load while you deploy

Environment: HEADGATE_TOKEN or ADMIN_TOKEN, where no file is named; HEADGATE_KEY, a gateway key, where callers need one; PROVIDER_KEY, the provider's key of
the upstream, where the operator's is not used. None of them is ever printed.`;

const ids = CHECKS.map(({ id }) => id);

const numbers = z
  .string()
  .transform((text) => text.split(',').map(Number))
  .pipe(z.array(z.number().positive().max(3_600)).min(1));

const argumentsSchema = z
  .object({
    url: z
      .url({ protocol: /^https?$/, error: 'expected the URL of a deployment' })
      .transform((text) => new URL(text).origin),
    token: z
      .string({ error: 'expected --token-file FILE, or ADMIN_TOKEN in the environment' })
      .min(1),
    only: z
      .string()
      .transform((text) => text.split(','))
      .pipe(z.array(z.enum(ids, { error: `expected checks of ${ids.join(', ')}` })))
      .nullable(),
    dryRun: z.boolean(),
    json: z.string().nullable(),
    load: z.coerce.number().min(0.01).max(1),
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
      context.addIssue({ code: 'custom', path: ['model'], message: 'expected with --upstream' });
    }
    if (!given.allowSpend) {
      const message = 'expected with --upstream, because its calls cost money';
      context.addIssue({ code: 'custom', path: ['allowSpend'], message });
    }
  });

export type CanaryArguments = z.output<typeof argumentsSchema>;

const flag = { type: 'boolean', default: false } as const;
const text = { type: 'string' } as const;

/** Names of options whose names in the program are others. */
const OPTION: Readonly<Record<string, string>> = {
  dryRun: 'dry-run',
  waitsS: 'waits-s',
  allowLoad: 'allow-load',
  allowSpend: 'allow-spend',
  duringDeploy: 'during-deploy',
  gatewayKey: 'HEADGATE_KEY',
};

/** Reads the command line; null: help is wanted. Throws `NotPossible` where it cannot be run so. */
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
  // Never the values: one of them is a token.
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

/** Options of `headgate canary`, as `parseArgs` takes them. */
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
    // Its message would repeat what stands there, which may be the token: npm takes options away that have no `--` before them.
    const { code } = error as { readonly code?: string };
    if (code === 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL') {
      throw new CheckNotPossible(
        'Options alone are expected; npm run canary wants -- before them.',
      );
    }
    throw new CheckNotPossible(error instanceof Error ? error.message : String(error));
  }
}

/** Works out what somebody has consented to. */
export function consentsOf(given: CanaryArguments): ReadonlySet<Need> {
  const consents: [Need, boolean][] = [
    ['load', given.allowLoad],
    ['upstream', given.upstream !== null],
    ['deploy', given.duringDeploy],
  ];
  return new Set(consents.flatMap(([need, isGiven]) => (isGiven ? [need] : [])));
}
