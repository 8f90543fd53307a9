import { changesBetween } from '../../../../src/config/changes-between.ts';
import { Changes } from '../../ui/changes.tsx';
import { rebase, type EditedDocument } from '../../model/document.ts';
import { shortText } from '../../model/short-text.ts';

/** Somebody else changed the same thing: what they did, what I did, and where both meet. */
export function Conflict(props: {
  readonly base: EditedDocument;
  readonly mine: EditedDocument;
  /** Null: it was deleted. */
  readonly theirs: EditedDocument | null;
  /** Goes on with my changes on top of theirs. */
  readonly onTakeOver: (merged: EditedDocument) => void;
  /** Goes on with theirs alone. */
  readonly onStartAnew: () => void;
}) {
  const { base, mine, theirs } = props;
  if (theirs === null) {
    return (
      <section class="conflict" aria-label="Conflict">
        <div role="alert">
          <h2>Somebody deleted this meanwhile</h2>
        </div>
        <p>Applied now, your version would be made anew.</p>
        <div class="actions">
          <button type="button" onClick={() => props.onTakeOver(mine)}>
            Go on and make it anew
          </button>
          <a class="button" href="/admin">
            Leave it deleted
          </a>
        </div>
      </section>
    );
  }
  const { value, clashes } = rebase(base, mine, theirs);
  return (
    <section class="conflict" aria-label="Conflict">
      <div role="alert">
        <h2>Somebody else changed this meanwhile</h2>
      </div>
      <div class="sides">
        <div>
          <h3>They changed</h3>
          <Changes changes={changesBetween(base, theirs).changes} />
        </div>
        <div>
          <h3>You changed</h3>
          <Changes changes={changesBetween(base, mine).changes} />
        </div>
      </div>
      {clashes.length > 0 && (
        <p>
          Both changed{' '}
          {clashes.map(({ path, mine: own }, at) => (
            <span key={path}>
              {at > 0 && ', '}
              <code>{path}</code> (yours: {shortText(own) ?? 'another value'})
            </span>
          ))}
          . Taken over, yours holds there.
        </p>
      )}
      <div class="actions">
        <button
          type="button"
          class="primary"
          onClick={() => props.onTakeOver(value as EditedDocument)}
        >
          Put my changes on top
        </button>
        <button type="button" onClick={props.onStartAnew}>
          Drop mine, start anew
        </button>
      </div>
    </section>
  );
}
