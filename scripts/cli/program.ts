import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { hide } from '../canary/hide.ts';
import { ROOT } from '../serve/build.ts';
import { release, setLimit, switchGroups } from './commands/acts.ts';
import {
  correctBudget,
  listCorrections,
  undoCorrection,
  type Correcting,
} from './commands/budgets.ts';
import { apply, diff, listVersions, rollBack, type RollbackOptions } from './commands/config.ts';
import { doctor } from './commands/doctor.ts';
import { FOREIGN_SYSTEMS, importFile } from './commands/import.ts';
import {
  createKey,
  deleteKey,
  listKeys,
  revokeKey,
  rotateKey,
  type NewKeyFields,
  type Rotation,
} from './commands/keys.ts';
import { showRefusals, type RefusalFilters } from './commands/refusals.ts';
import { showLeases, showStatus, showWaiters } from './commands/status.ts';
import { EXIT, CommandFailure, type ExitCode } from './failure.ts';
import { escapeLines, type Output } from './output.ts';
import { secretOf, targetOf, type CliTarget, type TargetOptions } from './target.ts';
import { endOf, type StopSignal } from './while.ts';

const ABOUT = `
Environment:
  HEADGATE_URL         URL of the deployment (default http://localhost:8787)
  HEADGATE_TOKEN       ADMIN_TOKEN of the deployment, or an admin key (default: the variable ADMIN_TOKEN)
  HEADGATE_KEY         gateway key for the calls of doctor and canary

Exit codes:
  0  success
  1  negative result: changes were found, a check failed, or the change was not confirmed
  2  invalid usage
  3  no response from the server
  4  not allowed
  5  not found
  6  conflict with another change
  7  invalid input
  8  partial success: import left something out, and the notes list it`;

interface CommandOptions extends TargetOptions {
  readonly json?: boolean;
  /** Set by commands that ask for confirmation. */
  readonly yes?: boolean;
}

/** Gateway and admin keys. An argument in the wrong place may be one. */
const KEY = /\bhga?_[\w-]+/g;

export async function runCli(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const [first = '', ...rest] = args;
  if (first === 'serve') return serve(rest);
  if (first === 'canary') return canary(rest, env);
  const secrets = secretsOf(args, env);
  const hidden = (text: string): string => hide(text, secrets).replaceAll(KEY, '***');
  const note = (text: string): void => void process.stderr.write(`${escapeLines(hidden(text))}\n`);
  for (const stream of [process.stdout, process.stderr]) stream.on('error', outlive);
  let code: ExitCode = EXIT.ok;
  const program = programOf(env, note, (ended) => {
    code = ended;
  });
  try {
    await program.parseAsync([...args], { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    if (!(error instanceof CommandFailure)) throw error;
    note(error.message);
    return error.code;
  }
}

/** Ignores a closed output, as in `| head`, so that a change that has begun is completed. */
function outlive(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
}

function versionOf(): string {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly version: string;
  };
  return version;
}

/** Collects the secrets to hide in the output: tokens in the environment, and values of --token. */
function secretsOf(args: readonly string[], env: NodeJS.ProcessEnv): string[] {
  const given = args.flatMap((arg, at) =>
    arg === '--token' ? (args[at + 1] ?? []) : arg.startsWith('--token=') ? arg.slice(8) : [],
  );
  const known = ['HEADGATE_TOKEN', 'ADMIN_TOKEN', 'HEADGATE_KEY'].flatMap(
    (name) => env[name]?.trim() || [],
  );
  return [...given, ...known].filter((secret) => secret !== '');
}

async function serve(args: readonly string[]): Promise<never> {
  // Only this command loads workerd.
  const { runServe } = await import('../serve/command.ts');
  await runServe(args, 'headgate serve');
  // `runServe` ends the process.
  return new Promise(() => undefined);
}

async function canary(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const { runCanaryCommand } = await import('../canary/command.ts');
  const url = env['HEADGATE_URL'];
  const isNamed = args.some((arg) => /^--(?:url|help)(?:=|$)/.test(arg));
  return runCanaryCommand(isNamed || !url ? args : ['--url', url, ...args], env, 'headgate canary');
}

type RunCommand = (
  act: (target: CliTarget, output: Output) => Promise<ExitCode | void>,
  command: Command,
) => Promise<void>;

export function programOf(
  env: NodeJS.ProcessEnv,
  note: (text: string) => void,
  end: (code: ExitCode) => void,
): Command {
  const program = new Command('headgate')
    .description('Manage a Headgate deployment.')
    .version(versionOf())
    .exitOverride()
    // Commands inherit this setting when they are created, so it precedes them.
    .configureOutput({ writeErr: (text) => note(text.trimEnd()) })
    .showSuggestionAfterError()
    .enablePositionalOptions()
    .addHelpText('after', ABOUT);
  program.command('serve').description('Run Headgate on this machine (headgate serve --help).');
  const outputOf = ({ json }: CommandOptions): Output => ({
    isJson: json === true,
    out: (text) => void process.stdout.write(`${text}\n`),
    note,
  });
  const run: RunCommand = async (act, command) => {
    const options = command.optsWithGlobals<CommandOptions>();
    requireOneInput(command, options);
    end((await act(targetOf(options, env, note), outputOf(options))) ?? EXIT.ok);
  };
  addLooking(program, run);
  addActing(program, run);
  addConfiguring(program, run);
  addRollback(program, run);
  addKeys(program, run);
  addBudgets(program, run);
  addDoctor(program, env, run);
  withCommonOptions(
    program
      .command('import')
      .description(
        'Convert the configuration of another system, with notes on settings without a counterpart.',
      )
      .addArgument(
        program.createArgument('<system>', 'system of the file').choices(FOREIGN_SYSTEMS),
      )
      .argument(
        '<file>',
        'configuration file; for shaper a file with its command line; - for standard input',
      )
      .option('-o, --output <file>', 'file for the YAML (default: standard output)'),
    false,
  ).action(async (system: string, file: string, options: CommandOptions & { output?: string }) => {
    end(await importFile(outputOf(options), system, file, options.output));
  });
  program.command('canary').description('Test a real deployment (headgate canary --help).');
  return program;
}

/** Rejects a command that would read both its token and other input from standard input. */
function requireOneInput(command: Command, { token, tokenFile, yes }: CommandOptions): void {
  if (tokenFile !== '-' || token !== undefined) return;
  const instead = 'pass the token in --token-file FILE or HEADGATE_TOKEN';
  if (command.args.includes('-')) {
    const message = `--token-file - and the document - both read standard input. Name a file for the document, or ${instead}.`;
    throw new CommandFailure(EXIT.usage, message);
  }
  // The keys commands ask for confirmation on a terminal only.
  if (command.parent?.name() === 'keys') return;
  const changes = command.args.length > 0 || command.getOptionValue('undo') !== undefined;
  if (!changes || yes === true || !command.options.some(({ long }) => long === '--yes')) return;
  const message = `The command cannot ask for confirmation because standard input holds the token. Add --yes, or ${instead}.`;
  throw new CommandFailure(EXIT.usage, message);
}

/** Adds the options that all commands have. Local commands get only those that need no deployment. */
function withCommonOptions(command: Command, isRemote = true): Command {
  command.option('--json', 'print JSON instead of tables');
  if (!isRemote) return command;
  return command
    .option('--url <url>', 'URL of the deployment (default: HEADGATE_URL)')
    .option(
      '--token-file <file>',
      'file with the ADMIN_TOKEN or an admin key; - for standard input (default: HEADGATE_TOKEN)',
    )
    .addOption(
      new Option('--token <token>', 'the token itself, visible to other local users').hideHelp(),
    );
}

function addLooking(program: Command, run: RunCommand): void {
  withCommonOptions(
    program
      .command('status [group]')
      .description('Show the state of each group, and what needs attention.'),
  ).action((group: string | undefined, _options, command: Command) =>
    run((target, output) => showStatus(target, output, group), command),
  );
  withCommonOptions(
    program.command('leases [group]').description('List leases, oldest first.'),
  ).action((group: string | undefined, _options, command: Command) =>
    run((target, output) => showLeases(target, output, group), command),
  );
  withCommonOptions(
    program.command('waiters [group]').description('List queued calls, next first.'),
  ).action((group: string | undefined, _options, command: Command) =>
    run((target, output) => showWaiters(target, output, group), command),
  );
  withCommonOptions(
    program
      .command('refusals [text]')
      .description('List calls that Headgate rejected in the last hour, with advice.')
      .option('--reason <reason>', 'only this value of the header headgate-reason')
      .option('--key <key>', 'only this key')
      .option('--team <team>', 'only keys of this team')
      .option('--group <group>', 'only this group')
      .option('--upstream <upstream>', 'only this upstream')
      .option('--since <instant>', 'only from this time on, such as 2027-01-01T00:00:00Z'),
  ).action((text: string | undefined, _options, command: Command) =>
    run((target, output) => {
      const { reason, key, team, group, upstream, since } = command.opts<RefusalFilters>();
      const all = Object.entries({ reason, key, team, group, upstream, since });
      const filters = Object.fromEntries(all.filter(([, value]) => value !== undefined));
      return showRefusals(target, output, text, filters);
    }, command),
  );
}

function addActing(program: Command, run: RunCommand): void {
  withCommonOptions(
    program
      .command('release <lease>')
      .description('Release a lease. Its upstream call is aborted before its slots are free.')
      .option('--group <group>', 'group of the lease (default: search all groups)'),
  ).action((lease: string, { group }: { group?: string }, command: Command) =>
    run((target, output) => release(target, output, lease, group), command),
  );
  temporary(
    withCommonOptions(
      program
        .command('pause <groups...>')
        .description('Pause groups. New calls are queued; calls in flight continue.'),
    ),
  ).action((groups: string[], options: StopSignal, command: Command) =>
    run(
      (target, output) =>
        switchGroups(
          target,
          output,
          'POST /groups/{name}/pause',
          groups,
          endOf(options, new Date()),
        ),
      command,
    ),
  );
  withCommonOptions(program.command('resume <groups...>').description('Resume groups.')).action(
    (groups: string[], _options, command: Command) =>
      run(
        (target, output) => switchGroups(target, output, 'POST /groups/{name}/resume', groups),
        command,
      ),
  );
  temporary(
    withCommonOptions(
      program
        .command('limit')
        .description('Set the maximum number of concurrent calls of a group.')
        .argument('<group>')
        .argument('<slots>', 'a whole number, or none for no limit', slotsOf),
    ),
  ).action((group: string, slots: number | null, options: StopSignal, command: Command) =>
    run(
      (target, output) => setLimit(target, output, group, slots, endOf(options, new Date())),
      command,
    ),
  );
}

function temporary(command: Command): Command {
  return command
    .option('--until <time>', 'revert automatically at 09:00 or 2026-11-24T09:00:00Z')
    .option('--for <time>', 'revert automatically after 90s, 30m or 2h');
}

function slotsOf(text: string): number | null {
  if (text === 'none') return null;
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Expected a whole number, or none for no limit.');
}

function addConfiguring(program: Command, run: RunCommand): void {
  withCommonOptions(
    program
      .command('apply <file>')
      .description(
        'Show the changes that a configuration makes, ask for confirmation, and apply them.',
      )
      .option('-y, --yes', 'apply without asking for confirmation'),
  ).action((file: string, { yes }: { yes?: boolean }, command: Command) =>
    run((target, output) => apply(target, output, file, yes === true), command),
  );
  withCommonOptions(
    program
      .command('diff <file>')
      .description(
        'Show the changes that a configuration would make. Exits with 1 if there are any.',
      ),
  ).action((file: string, _options, command: Command) =>
    run((target, output) => diff(target, output, file), command),
  );
}

function addRollback(program: Command, run: RunCommand): void {
  withCommonOptions(
    program
      .command('rollback')
      .description(
        'Roll back to a version, or undo one change. Without arguments, list the versions.',
      )
      .argument('[version]', 'restore the configuration of this version', versionNumberOf)
      .option('--undo <version>', 'undo the change that created this version', versionNumberOf)
      .addOption(
        new Option('--conflicts <how>', 'fields that were changed in later versions').choices([
          'refuse',
          'keep',
          'overwrite',
        ]),
      )
      .option('-y, --yes', 'apply without asking for confirmation'),
  ).action(
    (
      version: number | undefined,
      { undo, conflicts, yes }: RollbackOptions & { yes?: boolean },
      command: Command,
    ) => {
      if (version === undefined && undo === undefined) return run(listVersions, command);
      if (version !== undefined && undo !== undefined) {
        throw new CommandFailure(EXIT.usage, 'Use either a version or --undo, not both.');
      }
      const rollback = {
        ...(version === undefined ? {} : { version }),
        ...(undo === undefined ? {} : { undo }),
        ...(conflicts === undefined ? {} : { conflicts }),
      };
      return run((target, output) => rollBack(target, output, rollback, yes === true), command);
    },
  );
}

function versionNumberOf(text: string): number {
  if (/^\d{1,12}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Expected a version number.');
}

function addKeys(program: Command, run: RunCommand): void {
  const keys = program
    .command('keys')
    .description('List, create, rotate, revoke and delete gateway keys.');
  withCommonOptions(keys.command('list').description('List keys. Secrets are never shown.')).action(
    (_options, command: Command) => run(listKeys, command),
  );
  withCommonOptions(
    keys
      .command('create <id>')
      .description('Create a key and print its secret, which is shown only once.')
      .option(
        '--groups <globs>',
        'groups that the key may use, separated by commas (default: all)',
        listOf,
      )
      .option('--allow <globs>', 'additional rights, such as lease, separated by commas', listOf)
      .option('--slots <n>', 'maximum concurrent calls of the key', slotsOf)
      .option('--expires <instant>', 'expiry, such as 2027-01-01T00:00:00Z')
      .option('--note <text>', 'description for people')
      .option('-y, --yes', ASKS),
  ).action((id: string, options: NewKeyFields, command: Command) =>
    run((target, output) => createKey(target, output, id, options), command),
  );
  withCommonOptions(
    keys
      .command('rotate <id>')
      .description('Replace the secret of a key. The previous secret stays valid for one day.')
      .option('--grace <seconds>', 'how long the previous secret stays valid', secondsOf)
      .option('-y, --yes', ASKS),
  ).action((id: string, options: Rotation, command: Command) =>
    run((target, output) => rotateKey(target, output, id, options), command),
  );
  withCommonOptions(
    keys.command('revoke <id>').description('Revoke a key.').option('-y, --yes', ASKS),
  ).action((id: string, options: CommandOptions, command: Command) =>
    run((target, output) => revokeKey(target, output, id, options), command),
  );
  withCommonOptions(
    keys
      .command('delete <id>')
      .description('Revoke a key and remove it from the list.')
      .option('-y, --yes', ASKS),
  ).action((id: string, options: CommandOptions, command: Command) =>
    run((target, output) => deleteKey(target, output, id, options), command),
  );
}

/** Help of `--yes` for changes of keys. */
const ASKS =
  'do not ask for confirmation, even if calls like those of the last hour would be rejected';

function addBudgets(program: Command, run: RunCommand): void {
  const budgets = program.command('budgets').description('Correct the spend of budgets.');
  withCommonOptions(
    budgets
      .command('correct <group>')
      .description('Correct the spend in the budget of a group, key:ID or team:ID.')
      .requiredOption('--by <usd>', 'the amount to add; a negative one is subtracted', usdOf)
      .addOption(
        new Option(
          '--period <period>',
          'period of the charge; longer periods are corrected too',
        ).choices(['hour', 'day', 'month']),
      )
      .option('--partition <partition>', 'the partition, if the group is split')
      .option('--member <member>', 'the member, to correct its own budget')
      .option('--note <text>', 'the reason, for the audit log')
      .option('--id <id>', 'id of the correction; the same id is applied only once'),
  ).action((group: string, options: Correcting, command: Command) =>
    run((target, output) => correctBudget(target, output, group, options), command),
  );
  withCommonOptions(
    budgets.command('undo <group> <id>').description('Undo a correction in the current periods.'),
  ).action((group: string, id: string, _options, command: Command) =>
    run((target, output) => undoCorrection(target, output, group, id), command),
  );
  withCommonOptions(
    budgets.command('list <group>').description('List the latest corrections of a budget.'),
  ).action((group: string, _options, command: Command) =>
    run((target, output) => listCorrections(target, output, group), command),
  );
}

function usdOf(text: string): number {
  const usd = Number(text);
  if (/^[+-]?\d{1,9}(\.\d{1,6})?$/.test(text) && usd !== 0) return usd;
  throw new InvalidArgumentError('Expected an amount in USD other than 0, such as -12.50.');
}

const listOf = (text: string): string[] => text.split(',').filter((each) => each !== '');

/** Parses seconds into milliseconds. */
function secondsOf(text: string): number {
  if (/^\d{1,7}$/.test(text)) return Number(text) * 1_000;
  throw new InvalidArgumentError('Expected a number of seconds.');
}

function addDoctor(program: Command, env: NodeJS.ProcessEnv, run: RunCommand): void {
  withCommonOptions(
    program
      .command('doctor')
      .description(
        'Check groups, secrets, warnings, clock, versions, disk and providers. Exits with 1 if a check fails.',
      )
      .argument('[address]', 'URL of the deployment (default: --url)')
      .option('--model <model>', 'make one call to this model, which may cost one token')
      .option('--data <dir>', 'data folder of headgate serve on this machine (default .headgate)')
      .option('--all', 'check all built-in providers, not only the configured ones'),
  ).action(
    (
      address: string | undefined,
      { model, all, data }: { model?: string; all?: boolean; data?: string },
      command: Command,
    ) => {
      if (address !== undefined) command.setOptionValue('url', address);
      const key = secretOf(env, 'HEADGATE_KEY');
      const options = {
        all: all === true,
        key,
        release: versionOf(),
        ...(model === undefined ? {} : { model }),
        ...(data === undefined ? {} : { data }),
      };
      return run((target, output) => doctor(target, output, options), command);
    },
  );
}
