import type { AdminRequest } from '../../../src/admin/client.ts';
import { plural } from '../../../src/core/words/figures.ts';
import { isConfirmed } from './config.ts';
import { EXIT, type ExitCode } from '../failure.ts';
import { show, noteAll, span, table, type Output } from '../output.ts';
import { taken, type CliTarget } from '../target.ts';

const PAGE = 1_000;

/** Lists the gateway keys. Secrets are never shown. */
export async function listKeys(target: CliTarget, output: Output): Promise<void> {
  const keys: KeyRow[] = [];
  let cursor: string | null = null;
  do {
    const query = { limit: PAGE, ...(cursor === null ? {} : { cursor }) };
    const page: { keys: readonly KeyRow[]; next_cursor: string | null } = taken(
      await target.admin('GET /keys', { query }),
    );
    keys.push(...page.keys);
    cursor = page.next_cursor;
  } while (cursor !== null);
  show(output, { keys }, () =>
    keys.length === 0
      ? 'No gateway keys. Callers use their own provider keys.'
      : table(
          ['key', 'state', 'groups', 'slots', 'expires', 'note'],
          keys.map((key) => [
            key.id,
            key.state,
            key.groups.join(' ') || 'all',
            key.limits.max_concurrency ?? 'unlimited',
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

interface ConfirmOptions {
  /** Makes the change without asking for confirmation. */
  readonly yes?: boolean;
}

interface KeyChange {
  readonly preview: AdminRequest<'POST /keys/{id}/preview'>;
  readonly question: string;
  readonly isSure: boolean;
  /** Makes the change and returns its warnings. */
  readonly make: () => Promise<readonly string[]>;
}

/**
 * Changes a key. If the change has warnings, such as calls of the last hour that it would reject, it asks for
 * confirmation first. It asks on a terminal only, because scripts read the key from standard output.
 */
async function change(
  { admin }: CliTarget,
  output: Output,
  { preview, question, isSure, make }: KeyChange,
): Promise<ExitCode> {
  const previewed =
    isSure || !process.stdin.isTTY ? null : await admin('POST /keys/{id}/preview', preview);
  // If the preview fails, the change itself reports the error.
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

export interface NewKeyFields extends ConfirmOptions {
  readonly groups?: string[];
  readonly allow?: string[];
  readonly expires?: string;
  readonly note?: string;
  readonly slots?: number;
}

/** Creates a key. Standard output contains only the key, for scripts. */
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
      const answer = taken(await target.admin('POST /keys', { body }));
      output.note('Key (shown only once):');
      show(output, answer, () => answer.secret);
      return answer.warnings;
    },
  });
}

export interface Rotation extends ConfirmOptions {
  /** How long the previous key stays valid, in milliseconds. Absent: one day. */
  readonly grace?: number;
}

/** Replaces the secret of a key. The previous secret stays valid for the grace period. */
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
      const answer = taken(
        await target.admin('POST /keys/{id}/rotate', { params: { id }, ...body }),
      );
      const until = answer.key.previous_expires_at;
      const left = until === null ? 0 : Date.parse(until) - Date.now();
      output.note(
        `New key (shown only once). ${left > 0 ? `The previous key stays valid for ${span(left)}.` : 'The previous key is no longer valid.'}`,
      );
      show(output, answer, () => answer.secret);
      return answer.warnings;
    },
  });
}

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
      const answer = taken(await target.admin('POST /keys/{id}/revoke', { params: { id } }));
      const { waiters_cancelled: cancelled } = answer;
      show(output, answer, () =>
        [
          `Key \`${id}\` is revoked and stops working within 5 seconds. Its calls in flight continue.`,
          ...(cancelled > 0 ? [`Cancelled ${plural(cancelled, 'queued call')}.`] : []),
        ].join('\n'),
      );
      return answer.warnings;
    },
  });
}

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
      const answer = taken(await target.admin('DELETE /keys/{id}', { params: { id } }));
      show(output, answer, () => `Key \`${id}\` is deleted.`);
      return answer.warnings;
    },
  });
}

/** The preview of a change after which the current secret is no longer valid. */
const ending = (id: string): Pick<KeyChange, 'preview'> => ({
  preview: { params: { id }, query: { as: 'revoke' } },
});
