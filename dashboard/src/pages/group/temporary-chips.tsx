import { api } from '../../api.ts';
import { now } from '../../feed.ts';
import { clock, exact, relative } from '../../format.ts';
import { shortText } from '../../model/short-text.ts';
import type { GroupView } from '../../model/status.ts';
import { backPatch, type TemporaryView } from '../../model/temporary.ts';
import { may } from '../../session.ts';
import { complain, say } from '../../ui/toasts.tsx';

/** Fields of a group that revert automatically, each with its end. */
export function TemporaryChips({ group }: { readonly group: GroupView }) {
  const { name, temporary = [] } = group;
  if (temporary.length === 0) return null;
  return (
    <ul class="temporary" aria-label="Temporary changes">
      {temporary.map((one) => (
        <Chip key={one.field} name={name} one={one} />
      ))}
    </ul>
  );
}

function Chip({ name, one }: { readonly name: string; readonly one: TemporaryView }) {
  const patch = backPatch(one);
  const revert = async (): Promise<void> => {
    if (patch === null) return;
    const result = await api('PATCH /groups/{name}', { params: { name }, body: { ...patch } });
    if (result.ok) say(`${one.field} is reverted.`);
    else complain(`${one.field}: ${result.problem.detail}`);
  };
  return (
    <li>
      <code>{one.field}</code> {shortText(one.to) ?? 'another value'}{' '}
      <span title={`${exact(one.until)}, by ${one.actor}`}>
        until {clock(one.until, now.value)} ({relative(one.until, now.value)}), then{' '}
        {shortText(one.from) ?? 'as before'}
      </span>
      {patch !== null && may('admin') && (
        <button type="button" class="quiet" onClick={() => void revert()}>
          Revert now
        </button>
      )}
    </li>
  );
}
