import { may } from '../../session.ts';
import { useQuery } from '../../ui/use-query.ts';
import { CallsForm } from './calls-form.tsx';
import { EverythingSwitch } from './everything-switch.tsx';
import { GroupsForm } from './groups-form.tsx';
import './several.css';

/** Acts on several groups at once: the calls of a tenant or of an agent run, the switches of many groups, and everything. */
export function SeveralPage() {
  const [{ tenant = '', agent = '', group = '' }] = useQuery();
  return (
    <div class="several">
      <h1>Several at once</h1>
      {!may('operator') && <p>You may look: acting on calls needs the role operator.</p>}
      <fieldset class="plain" disabled={!may('operator')}>
        <CallsForm asked={{ tenant, agent, group }} />
        <GroupsForm />
        <EverythingSwitch />
      </fieldset>
    </div>
  );
}
