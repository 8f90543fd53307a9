import type { AdminRequest } from '../../../src/contract/admin/client.ts';
import { isConfirmed } from './config.ts';
import { EXIT, type ExitCode } from '../failure.ts';
import { show, noteAll, span, table, type Output } from '../output.ts';
import { taken, type CliTarget } from '../target.ts';

/** Keys of one page. */
const PAGE = 1_000;

/** Shows the keys of callers, without anything that opens. */
export async function listKeys(target: CliTarget, output: Output): Promise<void> {
  const keys: KeyRow[] = [];
  let cursor: string | null = null;
  do {
    const query = { limit: PAGE, ...(cursor === null ? {} : { cursor }) };
    const page: { keys: readonly KeyRow[]; next_cursor: string | null } = taken(
      await target.admin('listKeys', { query }),
    );
    keys.push(...page.keys);
    cursor = page.next_cursor;
  } while (cursor !== null);
  show(output, { keys }, () =>
    keys.length === 0
      ? 'There are none: callers bring their own provider keys.'
      : table(
          ['key', 'state', 'groups', 'slots', 'expires', 'note'],
          keys.map((key) => [
            key.id,
            key.state,
            key.groups.join(' ') || 'all',
            key.limits.max_concurrency ?? 'any',
            key.expires_at,
            key.note,
          ]),
        ),
  );
}

interface KeyRow {
  readonly id: string;
  readonly state: string;
  readonly groups: readonly string[];
  readonly limits: { readonly max_concurrency: number | null };
  readonly expires_at: string | null;
  readonly note: string;
}

/** Whether a change is made without asking, as `--yes` has it. */
interface ConfirmOptions {
  readonly yes?: boolean;
}

/** A change of a key, and the question before it. */
interface KeyChange {
  readonly preview: AdminRequest<'previewKey'>;
  readonly question: string;
  readonly isSure: boolean;
  /** Makes the change and returns its warnings. */
  readonly make: () => Promise<readonly string[]>;
}

/**
 * Makes a change of a key. If it has warnings, such as calls of the last hour that it would refuse, it asks first: only on a
 * terminal, because scripts take the key from standard output.
 */
async function change(
  { admin }: CliTarget,
  output: Output,
  { preview, question, isSure, make }: KeyChange,
): Promise<ExitCode> {
  const previewed = isSure || !process.stdin.isTTY ? null : await admin('previewKey', preview);
  // If the preview fails, the change itself says what is wrong.
  const shown = previewed?.ok === true ? previewed.body.warnings : [];
  noteAll(output, shown);
  if (shown.length > 0 && !(await isConfirmed(output, question))) {
    output.note('Nothing was changed.');
    return EXIT.no;
  }
  const warnings = await make();
  noteAll(
    output,
    warnings.filter((warning) => !shown.includes(warning)),
  );
  return EXIT.ok;
}

/** Fields of a new key that can be chosen here. */
export interface NewKeyFields extends ConfirmOptions {
  readonly groups?: string[];
  readonly allow?: string[];
  readonly expires?: string;
  readonly note?: string;
  readonly slots?: number;
}

/** Makes a key. The key alone goes to standard output, so that a script can take it. */
export function createKey(
  target: CliTarget,
  output: Output,
  id: string,
  { groups, allow, expires, note, slots, yes }: NewKeyFields,
): Promise<ExitCode> {
  const body = {
    id,
    ...(groups === undefined ? {} : { groups }),
    ...(allow === undefined ? {} : { allow }),
    ...(expires === undefined ? {} : { expires_at: expires }),
    ...(note === undefined ? {} : { note }),
    ...(slots === undefined ? {} : { limits: { max_concurrency: slots } }),
  };
  return change(target, output, {
    preview: { params: { id }, body },
    question: 'Create the key?',
    isSure: yes === true,
    make: async () => {
      const answer = taken(await target.admin('createKey', { body }));
      output.note('The key, shown this once:');
      show(output, answer, () => answer.secret);
      return answer.warnings;
    },
  });
}

/** How a key is rotated. */
export interface Rotation extends ConfirmOptions {
  /** How long the key before opens, in milliseconds. Absent: a day. */
  readonly grace?: number;
}

/** Makes a new key under the same id; the one before opens on for a while. */
export function rotateKey(
  target: CliTarget,
  output: Output,
  id: string,
  { grace, yes }: Rotation,
): Promise<ExitCode> {
  const body = grace === undefined ? {} : { body: { grace_ms: grace } };
  return change(target, output, {
    ...ending(id),
    question: 'Rotate the key?',
    isSure: yes === true || grace !== 0,
    make: async () => {
      const answer = taken(await target.admin('rotateKey', { params: { id }, ...body }));
      const until = answer.key.previous_expires_at;
      const left = until === null ? 0 : Date.parse(until) - Date.now();
      output.note(
        `The new key, shown this once. ${left > 0 ? `The one before opens for ${span(left)} more.` : 'The one before opens no more.'}`,
      );
      show(output, answer, () => answer.secret);
      return answer.warnings;
    },
  });
}

/** Takes a key back. */
export function revokeKey(
  target: CliTarget,
  output: Output,
  id: string,
  { yes }: ConfirmOptions,
): Promise<ExitCode> {
  return change(target, output, {
    ...ending(id),
    question: 'Revoke the key?',
    isSure: yes === true,
    make: async () => {
      const answer = taken(await target.admin('revokeKey', { params: { id } }));
      const { waiters_cancelled: cancelled } = answer;
      show(output, answer, () =>
        [
          `${id} opens nothing within 5 seconds; what is in flight goes on.`,
          ...(cancelled > 0 ? [`${cancelled} of its calls that waited were refused.`] : []),
        ].join('\n'),
      );
      return answer.warnings;
    },
  });
}

/** Removes a key and forgets it. */
export function deleteKey(
  target: CliTarget,
  output: Output,
  id: string,
  { yes }: ConfirmOptions,
): Promise<ExitCode> {
  return change(target, output, {
    ...ending(id),
    question: 'Delete the key?',
    isSure: yes === true,
    make: async () => {
      const answer = taken(await target.admin('deleteKey', { params: { id } }));
      show(output, answer, () => `${id} is forgotten.`);
      return answer.warnings;
    },
  });
}

/** The preview of a change after which a key opens nothing. */
const ending = (id: string): Pick<KeyChange, 'preview'> => ({
  preview: { params: { id }, query: { as: 'revoke' } },
});
