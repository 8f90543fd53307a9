import { may } from '../../session.ts';
import { useQuery } from '../../ui/use-query.ts';
import { CallsForm } from './calls-form.tsx';
import { EverythingSwitch } from './everything-switch.tsx';
import { GroupsForm } from './groups-form.tsx';
import './several.css';

/** Bulk actions on the calls of a tenant or agent run, on several groups, and on everything. */
export function SeveralPage() {
  const [{ tenant = '', agent = '', group = '' }] = useQuery();
  return (
    <div class="several">
      <h1>Bulk actions</h1>
      {!may('operator') && <p>Read-only. Acting on calls requires the operator role.</p>}
      <fieldset class="plain" disabled={!may('operator')}>
        <CallsForm asked={{ tenant, agent, group }} />
        <GroupsForm />
        <EverythingSwitch />
      </fieldset>
    </div>
  );
}
