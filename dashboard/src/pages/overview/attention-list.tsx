import { useState } from 'preact/hooks';
import type { Attention } from '../../../../src/contract/attention.ts';
import { attention, groupNamed } from '../../feed.ts';
import { pageOf } from '../../model/attention.ts';
import { StateWord } from '../../ui/state-word.tsx';

/** Number of entries shown at first, two lines each on a phone. */
const SHOWN = 3;

/** Maximum of listed entries. More usually have one cause, and the groups below show the rest. */
const LISTED_MAX = 30;

/** An entry with its subject, the state of its group, the cause, and the advice on hover. */
function Entry({ entry }: { readonly entry: Attention }) {
  const { subject, group, says, words, advice } = entry;
  const status = group === null ? undefined : groupNamed(group);
  return (
    <li>
      <a href={pageOf(entry)}>
        <bdi>{group ?? subject.id}</bdi>
      </a>
      {status !== undefined && <StateWord group={status} />}
      <span title={words === null ? advice : `${words}\n${advice}`}>
        <bdi>{says}</bdi>
      </span>
    </li>
  );
}

/** What needs attention, the most severe first. The height is fixed until expanded, so that nothing below moves. */
export function AttentionList() {
  const [isOpen, setOpen] = useState(false);
  const entries = attention.value.map((entry) => (
    <Entry
      key={`${entry.rule} ${entry.subject.kind} ${entry.subject.id} ${entry.reason ?? ''} ${entry.group === null ? entry.says : ''}`}
      entry={entry}
    />
  ));
  const shown = entries.slice(0, isOpen ? LISTED_MAX : SHOWN);
  const left = entries.length - shown.length;
  const canOpen = entries.length > SHOWN;
  return (
    <section class={isOpen ? 'look open' : 'look'} aria-labelledby="attention-title">
      <h2 id="attention-title">
        Needs attention {entries.length > 0 && <small>{entries.length}</small>}
      </h2>
      {entries.length === 0 ? (
        <p class="help">No problems. Calls are served, with no unusual waits.</p>
      ) : (
        <ul class="entries">{shown}</ul>
      )}
      {canOpen && (
        <button
          type="button"
          class="quiet more"
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          {isOpen
            ? `Show ${SHOWN}${left > 0 ? ` (${left} more are in the list below)` : ''}`
            : `Show ${left} more`}
        </button>
      )}
    </section>
  );
}
