import { duration, plural } from '../format.ts';
import { orphanedInWords } from '../model/sentence.ts';
import { tenantsOf } from '../model/tenants.ts';
import { tintOf } from '../model/tenant-tone.ts';
import type { Detail, GroupView } from '../model/status.ts';
import { Said } from '../ui/said.tsx';

interface PictureLegendProps {
  readonly group: Pick<GroupView, 'unclaimed' | 'unclaimed_until' | 'lent'>;
  readonly detail: Detail | null;
  readonly usualHoldMs: number | null;
}

/** Legend of the large picture, with the colours of its tenants. */
export function Legend({ group, detail, usualHoldMs }: PictureLegendProps) {
  const { most, others } = tenantsOf(detail);
  return (
    <div class="picture-legend">
      <ul aria-label="Legend">
        <li>
          <i class="hold unknown half" />
          {usualHoldMs === null
            ? ' in use'
            : ` in use, full after the usual ${duration(usualHoldMs)}`}
        </li>
        <li>
          <i class="hold old" /> three times the usual duration
        </li>
        <li>
          <i class="hold cooling" /> cooling down
        </li>
        {group.unclaimed > 0 && (
          <li>
            <i class="hold orphaned" /> {group.unclaimed} {orphanedInWords(group.unclaimed_until)}
          </li>
        )}
        {group.lent > 0 && (
          <li>
            <i class="hold prefetched" /> {group.lent} prefetched by Workers
          </li>
        )}
        <li>
          <i class="slot" /> free
        </li>
        <li>
          <i class="ceiling" /> learned ceiling
        </li>
        <li>
          <i class="mark high" /> high <i class="mark normal" /> normal <i class="mark low" /> low
        </li>
      </ul>
      {most.length > 0 && (
        <ul aria-label="Tenants by colour">
          {most.map(({ tenant, inUse, waiting }) => (
            <li key={tenant} title={`${inUse} in use, ${waiting} queued`}>
              <i class="swatch" style={tintOf(tenant)} /> <Said name={tenant} />{' '}
              <b>
                {inUse} + {waiting}
              </b>
            </li>
          ))}
          {others > 0 && <li>and {plural(others, 'more tenant')}</li>}
        </ul>
      )}
    </div>
  );
}
