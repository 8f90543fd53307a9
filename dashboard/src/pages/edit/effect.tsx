import { Changes } from '../../ui/changes.tsx';
import { count } from '../../format.ts';
import { consequences, type GroupPreview } from '../../model/effect.ts';

/** Effect of a change of a group now: slots before and after, calls that are touched, the recent hour. */
export function Effect({ preview }: { readonly preview: GroupPreview }) {
  const { changes, changes_omitted, group, warnings } = preview;
  const own = `groups[${group.name}].`;
  const listed = changes.map((change) => ({
    ...change,
    path: change.path.startsWith(own) ? change.path.slice(own.length) : '',
  }));
  return (
    <>
      <section aria-label="What this does now">
        <h3>What this does now</h3>
        <Slots preview={preview} />
        <ul class="consequences">
          {consequences(preview).map(({ text, tone }) => (
            <li key={text} class={tone}>
              {text}
            </li>
          ))}
        </ul>
      </section>
      {warnings.length > 0 && (
        <section aria-label="Warnings">
          <h3>Warnings</h3>
          <ul class="consequences">
            {warnings.map((warning) => (
              <li key={warning} class="bad">
                {warning}
              </li>
            ))}
          </ul>
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

/** Slots before and after as two bars on one scale, with what is in use now and was at most. */
function Slots({ preview: { now, last_hour } }: { readonly preview: GroupPreview }) {
  if (now === null) return null;
  const { from, to } = now.slots;
  const most = last_hour?.in_use_max ?? 0;
  const scale = Math.max(from ?? 0, to ?? 0, most, 1);
  const width = (slots: number | null): string => `${((slots ?? scale) / scale) * 100}%`;
  const gained = now.slots_gained;
  const said =
    gained === null || gained === 0
      ? null
      : `${count(Math.abs(gained))} ${gained > 0 ? 'gained' : 'lost'}`;
  return (
    <dl class="slots-change">
      {[
        { name: 'Slots now', slots: from, isNew: false },
        { name: 'Slots then', slots: to, isNew: true },
      ].map(({ name, slots, isNew }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <span class="bar" aria-hidden="true">
              <span class={isNew ? 'room new' : 'room'} style={{ width: width(slots) }} />
              {most > 0 && (
                <span
                  class="most"
                  style={{ left: width(most) }}
                  title="Most in use in the last hour"
                />
              )}
            </span>
            <span class="figure">
              <strong>{slots === null ? 'unlimited' : count(slots)}</strong>
              {isNew && said !== null && (
                <span class={gained !== null && gained < 0 ? 'lost' : 'gained'}>{said}</span>
              )}
            </span>
          </dd>
        </div>
      ))}
    </dl>
  );
}
