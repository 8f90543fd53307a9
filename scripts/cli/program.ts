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
Environment: HEADGATE_URL (http://localhost:8787), HEADGATE_TOKEN or ADMIN_TOKEN; HEADGATE_KEY for the calls of doctor and canary.
Exit codes: 0 done; 1 no: it differs, something is missing, nothing was changed; 2 wrong usage; 3 nobody answers;
4 not allowed; 5 not there; 6 changed meanwhile; 7 invalid.`;

interface CommandOptions extends TargetOptions {
  readonly json?: boolean;
  /** Of commands that ask before a change. */
  readonly yes?: boolean;
}

/** Keys of ours, wherever they stand: an argument in the wrong place may be one. */
const KEY = /\bhga?_[\w-]+/g;

/** Runs one command and answers with its exit code. */
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

/** Goes on where nobody reads any more, as behind `| head`: what was begun is still to be done. */
function outlive(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
}

/** Reads the version of this package. */
function versionOf(): string {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly version: string;
  };
  return version;
}

/** Collects what must not be repeated: tokens of the environment, and what stands behind --token. */
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
  // workerd is loaded for this command alone.
  const { runServe } = await import('../serve/command.ts');
  await runServe(args, 'headgate serve');
  // It ends the process by itself.
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

/** Makes the table of commands and their options. */
export function programOf(
  env: NodeJS.ProcessEnv,
  note: (text: string) => void,
  end: (code: ExitCode) => void,
): Command {
  const program = new Command('headgate')
    .description('Looks after a Headgate: what it does, who holds it, what it is told.')
    .version(versionOf())
    .exitOverride()
    // Before there are commands: each takes this over as it is made.
    .configureOutput({ writeErr: (text) => note(text.trimEnd()) })
    .showSuggestionAfterError()
    .enablePositionalOptions()
    .addHelpText('after', ABOUT);
  program.command('serve').description('runs a Headgate on this machine (headgate serve --help)');
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
  asking(
    program
      .command('import')
      .description(
        'turns a file of another system into our shape, with notes on what has no counterpart',
      )
      .addArgument(program.createArgument('<system>', 'whose it is').choices(FOREIGN_SYSTEMS))
      .argument('<file>', 'its configuration; of shaper a file with its command line; - for stdin')
      .option('-o, --output <file>', 'where to write the YAML; else to standard output'),
    false,
  ).action(async (system: string, file: string, options: CommandOptions & { output?: string }) => {
    end(await importFile(outputOf(options), system, file, options.output));
  });
  program.command('canary').description('checks a real deployment (headgate canary --help)');
  return program;
}

/** Refuses a command that would read its token and something else from one standard input. */
function requireOneInput(command: Command, { token, tokenFile, yes }: CommandOptions): void {
  if (tokenFile !== '-' || token !== undefined) return;
  const wayOut = 'Use --token-file FILE or HEADGATE_TOKEN for the token';
  if (command.args.includes('-')) {
    const message = `--token-file - and the document - both read standard input, which holds one of them. ${wayOut}, or name a file for the document.`;
    throw new CommandFailure(EXIT.usage, message);
  }
  // Commands of keys ask on a terminal only.
  if (command.parent?.name() === 'keys') return;
  const changes = command.args.length > 0 || command.getOptionValue('undo') !== undefined;
  if (!changes || yes === true || !command.options.some(({ long }) => long === '--yes')) return;
  const message = `This command asks before it changes anything, and standard input holds the token. Add --yes. ${wayOut} to be asked.`;
  throw new CommandFailure(EXIT.usage, message);
}

/** Adds the options that all commands have, or those that need nobody. */
function asking(command: Command, isRemote = true): Command {
  command.option('--json', 'JSON for scripts, in place of tables');
  if (!isRemote) return command;
  return command
    .option('--url <url>', 'the Headgate; else HEADGATE_URL')
    .option(
      '--token-file <file>',
      'file with its ADMIN_TOKEN or an admin key, - for stdin; else HEADGATE_TOKEN',
    )
    .addOption(new Option('--token <token>', 'the same; others on this machine see it').hideHelp());
}

function addLooking(program: Command, run: RunCommand): void {
  asking(
    program.command('status [group]').description('what each group does at this moment'),
  ).action((group: string | undefined, _options, command: Command) =>
    run((target, output) => showStatus(target, output, group), command),
  );
  asking(program.command('leases [group]').description('who holds a slot, oldest first')).action(
    (group: string | undefined, _options, command: Command) =>
      run((target, output) => showLeases(target, output, group), command),
  );
  asking(program.command('waiters [group]').description('who waits, the next one first')).action(
    (group: string | undefined, _options, command: Command) =>
      run((target, output) => showWaiters(target, output, group), command),
  );
  asking(
    program
      .command('refusals [text]')
      .description('calls that Headgate itself refused within the last hour, and what to do')
      .option('--reason <reason>', 'only this reason, as in the header headgate-reason')
      .option('--key <key>', 'only this key')
      .option('--team <team>', 'only keys of this team')
      .option('--group <group>', 'only this group')
      .option('--upstream <upstream>', 'only this upstream')
      .option('--since <instant>', 'from then on, as in 2027-01-01T00:00:00Z'),
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
  asking(
    program
      .command('release <lease>')
      .description('takes a slot back: the upstream call is aborted, then the slot is free')
      .option('--group <group>', 'its group; else it is looked for'),
  ).action((lease: string, { group }: { group?: string }, command: Command) =>
    run((target, output) => release(target, output, lease, group), command),
  );
  passing(
    asking(
      program
        .command('pause <groups...>')
        .description('grants nothing in these groups; calls wait, and what is in flight goes on'),
    ),
  ).action((groups: string[], options: StopSignal, command: Command) =>
    run(
      (target, output) =>
        switchGroups(target, output, 'pauseGroup', groups, endOf(options, new Date())),
      command,
    ),
  );
  asking(program.command('resume <groups...>').description('lets them go on')).action(
    (groups: string[], _options, command: Command) =>
      run((target, output) => switchGroups(target, output, 'resumeGroup', groups), command),
  );
  passing(
    asking(
      program
        .command('limit')
        .description('sets how many calls of a group may be in flight at once')
        .argument('<group>')
        .argument('<slots>', 'a whole number, or none for any number', slotsOf),
    ),
  ).action((group: string, slots: number | null, options: StopSignal, command: Command) =>
    run(
      (target, output) => setLimit(target, output, group, slots, endOf(options, new Date())),
      command,
    ),
  );
}

/** Adds the end of a change that goes back by itself. */
function passing(command: Command): Command {
  return command
    .option('--until <time>', 'goes back by itself then: 09:00, or 2026-11-24T09:00:00Z')
    .option('--for <time>', 'goes back by itself after that: 90s, 30m, 2h');
}

function slotsOf(text: string): number | null {
  if (text === 'none') return null;
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('expected a whole number, or none.');
}

function addConfiguring(program: Command, run: RunCommand): void {
  asking(
    program
      .command('apply <file>')
      .description('shows what a configuration changes and, with a yes, makes it so')
      .option('-y, --yes', 'does not ask'),
  ).action((file: string, { yes }: { yes?: boolean }, command: Command) =>
    run((target, output) => apply(target, output, file, yes === true), command),
  );
  asking(
    program
      .command('diff <file>')
      .description('shows what a configuration would change; exits with 1 if anything'),
  ).action((file: string, _options, command: Command) =>
    run((target, output) => diff(target, output, file), command),
  );
}

function addRollback(program: Command, run: RunCommand): void {
  asking(
    program
      .command('rollback')
      .description('goes back to a version, or takes one change back; alone it lists the versions')
      .argument('[version]', 'everything as it was at this version', versionNumberOf)
      .option('--undo <version>', 'takes back the change that made this version', versionNumberOf)
      .addOption(
        new Option('--conflicts <how>', 'fields that were changed since').choices([
          'refuse',
          'keep',
          'overwrite',
        ]),
      )
      .option('-y, --yes', 'does not ask'),
  ).action(
    (
      version: number | undefined,
      { undo, conflicts, yes }: RollbackOptions & { yes?: boolean },
      command: Command,
    ) => {
      if (version === undefined && undo === undefined) return run(listVersions, command);
      if (version !== undefined && undo !== undefined) {
        throw new CommandFailure(EXIT.usage, 'Either a version or --undo.');
      }
      const way = {
        ...(version === undefined ? {} : { version }),
        ...(undo === undefined ? {} : { undo }),
        ...(conflicts === undefined ? {} : { conflicts }),
      };
      return run((target, output) => rollBack(target, output, way, yes === true), command);
    },
  );
}

function versionNumberOf(text: string): number {
  if (/^\d{1,12}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('expected the number of a version.');
}

function addKeys(program: Command, run: RunCommand): void {
  const keys = program
    .command('keys')
    .description('keys of callers: list, create, rotate, revoke, delete');
  asking(keys.command('list').description('all keys, without what opens')).action(
    (_options, command: Command) => run(listKeys, command),
  );
  asking(
    keys
      .command('create <id>')
      .description('makes a key and writes it to standard output, this once')
      .option('--groups <globs>', 'groups that it may use, separated by commas; else all', listOf)
      .option('--allow <globs>', 'additional rights, such as lease, separated by commas', listOf)
      .option('--slots <n>', 'calls that it may have in flight at once', slotsOf)
      .option('--expires <instant>', 'when it ends, as in 2027-01-01T00:00:00Z')
      .option('--note <text>', 'for people')
      .option('-y, --yes', ASKS),
  ).action((id: string, options: NewKeyFields, command: Command) =>
    run((target, output) => createKey(target, output, id, options), command),
  );
  asking(
    keys
      .command('rotate <id>')
      .description('makes a new key under the same id; the one before opens for a day more')
      .option('--grace <seconds>', 'how long the one before opens', secondsOf)
      .option('-y, --yes', ASKS),
  ).action((id: string, options: Rotation, command: Command) =>
    run((target, output) => rotateKey(target, output, id, options), command),
  );
  asking(
    keys.command('revoke <id>').description('takes a key back').option('-y, --yes', ASKS),
  ).action((id: string, options: CommandOptions, command: Command) =>
    run((target, output) => revokeKey(target, output, id, options), command),
  );
  asking(
    keys
      .command('delete <id>')
      .description('removes a key and forgets it')
      .option('-y, --yes', ASKS),
  ).action((id: string, options: CommandOptions, command: Command) =>
    run((target, output) => deleteKey(target, output, id, options), command),
  );
}

/** Help of `--yes`, for changes of keys. */
const ASKS = 'does not ask, even if calls like those of the last hour would be refused';

function addBudgets(program: Command, run: RunCommand): void {
  const budgets = program
    .command('budgets')
    .description('corrections of the spend of budgets: correct, undo, list');
  asking(
    budgets
      .command('correct <group>')
      .description('corrects the spend of the budget of a group, key:ID or team:ID')
      .requiredOption('--by <usd>', 'the amount to add; a negative one is subtracted', usdOf)
      .addOption(
        new Option(
          '--period <period>',
          'when the charge was made; longer periods are corrected too',
        ).choices(['hour', 'day', 'month']),
      )
      .option('--partition <partition>', 'the partition, if the group is split')
      .option('--member <member>', 'the member, to correct its own budget')
      .option('--note <text>', 'the reason, for the audit log')
      .option('--id <id>', 'id of the correction; sending the same id again changes nothing'),
  ).action((group: string, options: Correcting, command: Command) =>
    run((target, output) => correctBudget(target, output, group, options), command),
  );
  asking(
    budgets.command('undo <group> <id>').description('undoes a correction in the current periods'),
  ).action((group: string, id: string, _options, command: Command) =>
    run((target, output) => undoCorrection(target, output, group, id), command),
  );
  asking(budgets.command('list <group>').description('the last corrections of a budget')).action(
    (group: string, _options, command: Command) =>
      run((target, output) => listCorrections(target, output, group), command),
  );
}

function usdOf(text: string): number {
  const usd = Number(text);
  if (/^[+-]?\d{1,9}(\.\d{1,6})?$/.test(text) && usd !== 0) return usd;
  throw new InvalidArgumentError('expected an amount in USD other than 0, like -12.50.');
}

const listOf = (text: string): string[] => text.split(',').filter((each) => each !== '');

/** Reads seconds as milliseconds. */
function secondsOf(text: string): number {
  if (/^\d{1,7}$/.test(text)) return Number(text) * 1_000;
  throw new InvalidArgumentError('expected seconds.');
}

function addDoctor(program: Command, env: NodeJS.ProcessEnv, run: RunCommand): void {
  asking(
    program
      .command('doctor')
      .description(
        'what is set up, missing or wrong: groups, secrets, warnings, clock, versions, disk, providers; exit 1 if anything is',
      )
      .argument('[address]', 'the Headgate; else --url')
      .option('--model <model>', 'makes one call to it, which may cost a token')
      .option('--data <dir>', 'data folder of headgate serve on this machine (default .headgate)')
      .option('--all', 'asks every built-in provider, not those alone that are configured'),
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
