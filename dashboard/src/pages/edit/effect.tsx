import { ChangeWarnings } from '../../ui/change-warnings.tsx';
import { Changes } from '../../ui/changes.tsx';
import type { GroupPreview } from '../../model/effect.ts';
import { EffectNow } from '../../ui/effect-now.tsx';

export function Effect(props: {
  readonly preview: GroupPreview;
  /** Sets the fallback price of the change to 0 USD. */
  readonly onFree: () => void;
}) {
  const { preview } = props;
  const { changes, changes_omitted, group, warnings } = preview;
  const own = `groups[${group.name}].`;
  const listed = changes.map((change) => ({
    ...change,
    path: change.path.startsWith(own) ? change.path.slice(own.length) : '',
  }));
  return (
    <>
      <EffectNow change={preview} title="What this does now" />
      {warnings.length > 0 && (
        <section aria-label="Warnings">
          <h3>Warnings</h3>
          <ChangeWarnings preview={preview} group={group.name} onFree={props.onFree} />
        </section>
      )}
      {preview.now !== null && (
        <section aria-label="Changes">
          <h3>Changes</h3>
          <Changes changes={listed} omitted={changes_omitted} />
        </section>
      )}
    </>
  );
}
