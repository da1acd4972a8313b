'use strict';
// node-zookeeper-client at work: every operation, watches, transactions, reconnects.
const assert = require('assert');
const path = require('path');
const zookeeper = require(path.join(process.env.INTEROP_NODE_MODULES, 'node-zookeeper-client'));
const { check, call, eventually, run, within } = require('./report.js');

const { ACL, CreateMode, Event, Exception, Id, Permission } = zookeeper;
const address = process.argv[2];
const sessionTimeout = 9000;
let opened = [];

// open returns a connected client whose operations are promises; it is closed when the check ends.
async function open(hosts = address, options = {}) {
  const raw = zookeeper.createClient(hosts, { sessionTimeout, spinDelay: 50, ...options });
  const client = { raw, states: [] };
  raw.on('state', (state) => client.states.push(state.getName()));
  const promise = (method) => (...args) =>
    new Promise((resolve, reject) =>
      raw[method](...args, (err, ...results) => (err ? reject(err) : resolve(results.length > 1 ? results : results[0]))));
  for (const method of ['create', 'remove', 'exists', 'getData', 'setData', 'getChildren', 'getACL', 'setACL', 'mkdirp',
    'removeRecursive', 'listSubTreeBFS']) client[method] = promise(method);
  client.commit = (transaction) =>
    new Promise((resolve) => transaction.commit((error, results) => resolve({ error, results })));
  client.close = () => {
    if (client.closed) return Promise.resolve();
    client.closed = true;
    const gone = new Promise((resolve) => raw.once('disconnected', resolve));
    raw.close();
    return within(15, 'the answer to close', gone);
  };
  opened.push(client);
  await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('no connection within 20 s')), 20000);
    raw.once('connected', () => {
      clearTimeout(timer);
      resolve();
    });
    raw.connect();
  });
  return client;
}

function session(name, body) {
  check(name, async () => {
    opened = [];
    try {
      await body();
    } finally {
      await Promise.all(opened.map((client) => client.close()));
    }
  });
}

async function refused(code, promise) {
  try {
    await promise;
  } catch (err) {
    if (typeof err.getCode !== 'function') throw err;
    assert.strictEqual(err.getCode(), code, `${err.message}, want code ${code}`);
    return;
  }
  assert.fail(`not refused with ${code}`);
}

// A watcher that keeps its events.
function watcher() {
  const seen = [];
  const watch = (event) => seen.push(`${event.getName()} ${event.getPath()}`);
  watch.expect = async (...want) => {
    await eventually(() => seen.length >= want.length, `events ${want}`);
    assert.deepStrictEqual(seen, want);
  };
  watch.seen = seen;
  return watch;
}

const long = (buffer) => BigInt(`0x${buffer.toString('hex')}`);
const retryLoss = async (operation) => {
  for (;;) {
    try {
      return await operation();
    } catch (err) {
      if (!err.getCode || err.getCode() !== Exception.CONNECTION_LOSS) throw err;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
};

session('session-handshake', async () => {
  const zk = await open();
  assert.notStrictEqual(long(zk.raw.getSessionId()), 0n);
  assert.strictEqual(zk.raw.getSessionPassword().length, 16);
  assert.strictEqual(zk.raw.getSessionTimeout(), sessionTimeout);
  assert.strictEqual((await open(address, { sessionTimeout: 500 })).raw.getSessionTimeout(), 1000);
  assert.strictEqual((await open(address, { sessionTimeout: 3600000 })).raw.getSessionTimeout(), 10000);
});

session('create-get-set-delete', async () => {
  const zk = await open();
  await zk.mkdirp('/n/crud');
  assert.strictEqual(await zk.create('/n/crud/a', Buffer.from('one')), '/n/crud/a');
  let [data, stat] = await zk.getData('/n/crud/a');
  assert.strictEqual(data.toString(), 'one');
  assert.deepStrictEqual([stat.version, stat.cversion, stat.aversion, stat.dataLength, stat.numChildren], [0, 0, 0, 3, 0]);
  assert.strictEqual(long(stat.czxid), long(stat.mzxid));
  assert.strictEqual(long(stat.czxid), long(stat.pzxid));
  assert.strictEqual(long(stat.ephemeralOwner), 0n);
  const changed = await zk.setData('/n/crud/a', Buffer.from('three'), 0);
  assert.strictEqual(changed.version, 1);
  assert(long(changed.mzxid) > long(stat.mzxid));
  await refused(Exception.BAD_VERSION, zk.setData('/n/crud/a', Buffer.from('x'), 0));
  await refused(Exception.BAD_VERSION, zk.remove('/n/crud/a', 7));
  await refused(Exception.NODE_EXISTS, zk.create('/n/crud/a'));
  await refused(Exception.NO_NODE, zk.create('/n/crud/none/a'));
  await refused(Exception.NO_NODE, zk.getData('/n/crud/none'));
  await refused(Exception.NO_NODE, zk.remove('/n/crud/none'));
  assert.strictEqual(await zk.exists('/n/crud/none'), null);
  await zk.create('/n/crud/a/b');
  await refused(Exception.NOT_EMPTY, zk.remove('/n/crud/a'));
  assert.deepStrictEqual((await zk.listSubTreeBFS('/n/crud/a')).sort(), ['/n/crud/a', '/n/crud/a/b']);
  await zk.removeRecursive('/n/crud/a');
  assert.strictEqual(await zk.exists('/n/crud/a'), null);
  // Without data the client sends null, which is not the empty buffer.
  await zk.create('/n/crud/null');
  assert.strictEqual((await zk.getData('/n/crud/null'))[0], undefined);
  await zk.create('/n/crud/empty', Buffer.alloc(0));
  assert.strictEqual((await zk.getData('/n/crud/empty'))[0].length, 0);
  const big = Buffer.alloc(900000, 'zookeeper');
  await zk.create('/n/crud/big', big);
  assert((await zk.getData('/n/crud/big'))[0].equals(big));
});

session('modes', async () => {
  const zk = await open();
  const other = await open();
  await zk.mkdirp('/n/modes');
  assert.strictEqual(await zk.create('/n/modes/s-', CreateMode.PERSISTENT_SEQUENTIAL), '/n/modes/s-0000000000');
  await zk.create('/n/modes/p');
  assert.strictEqual(await zk.create('/n/modes/s-', CreateMode.EPHEMERAL_SEQUENTIAL), '/n/modes/s-0000000002');
  await zk.create('/n/modes/e', CreateMode.EPHEMERAL);
  const stat = await other.exists('/n/modes/e');
  assert.strictEqual(long(stat.ephemeralOwner), long(zk.raw.getSessionId()));
  await refused(Exception.NO_CHILDREN_FOR_EPHEMERALS, zk.create('/n/modes/e/c'));
  const watch = watcher();
  await other.exists('/n/modes/e', watch);
  await zk.close();
  await watch.expect('NODE_DELETED /n/modes/e');
  const [names] = await other.getChildren('/n/modes');
  assert.deepStrictEqual(names.sort(), ['p', 's-0000000000']);
});

session('children', async () => {
  const zk = await open();
  await zk.mkdirp('/n/children');
  const want = [];
  for (let i = 0; i < 3000; i++) want.push(`some-child-${String(i).padStart(6, '0')}`);
  await Promise.all(want.map((name) => zk.create(`/n/children/${name}`)));
  const [names, stat] = await zk.getChildren('/n/children');
  assert.deepStrictEqual(names.sort(), want);
  assert.deepStrictEqual([stat.numChildren, stat.cversion], [3000, 3000]);
  await Promise.all(want.map((name) => zk.remove(`/n/children/${name}`)));
  assert.deepStrictEqual((await zk.getChildren('/n/children'))[0], []);
  assert((await zk.getChildren('/'))[0].includes('zookeeper'));
});

session('unicode-names', async () => {
  const zk = await open();
  await zk.mkdirp('/n/unicode');
  const names = ['grüße', '日本語', 'with space', '…', '...x'].sort();
  for (const name of names) assert.strictEqual(await zk.create(`/n/unicode/${name}`, Buffer.from(name)), `/n/unicode/${name}`);
  assert.deepStrictEqual((await zk.getChildren('/n/unicode'))[0].sort(), names);
  for (const name of names) assert.strictEqual((await zk.getData(`/n/unicode/${name}`))[0].toString(), name);
  await refused(Exception.BAD_ARGUMENTS, zk.create('/n/unicode/😀'));
});

session('watches', async () => {
  const zk = await open();
  const other = await open();
  await zk.mkdirp('/n/watch');
  const [exist, data, child, gone] = [watcher(), watcher(), watcher(), watcher()];
  assert.strictEqual(await zk.exists('/n/watch/n', exist), null);
  await zk.getChildren('/n/watch', child);
  await other.create('/n/watch/n');
  await exist.expect('NODE_CREATED /n/watch/n');
  await child.expect('NODE_CHILDREN_CHANGED /n/watch');
  await zk.getData('/n/watch/n', data);
  await other.setData('/n/watch/n', Buffer.from('1'));
  await data.expect('NODE_DATA_CHANGED /n/watch/n');
  await zk.getData('/n/watch/n', gone);
  await other.remove('/n/watch/n');
  await gone.expect('NODE_DELETED /n/watch/n');
  await zk.exists('/n/watch');
  assert.strictEqual(exist.seen.length + data.seen.length + child.seen.length + gone.seen.length, 4);
});

session('watches-after-reconnect', async () => {
  const zk = await open();
  const other = await open();
  await zk.mkdirp('/n/re/m');
  await zk.create('/n/re/n');
  const [data, exist, child, missed] = [watcher(), watcher(), watcher(), watcher()];
  await zk.getData('/n/re/n', data);
  await zk.exists('/n/re/new', exist);
  await zk.getChildren('/n/re', child);
  await zk.getData('/n/re/m', missed);
  const id = long(zk.raw.getSessionId());
  const states = zk.states.length;
  await call('cut');
  await retryLoss(() => other.setData('/n/re/n', Buffer.from('1')));
  await eventually(() => zk.states.slice(states).includes('SYNC_CONNECTED'), 'connected again');
  assert.strictEqual(long(zk.raw.getSessionId()), id);
  await data.expect('NODE_DATA_CHANGED /n/re/n');
  await retryLoss(() => other.create('/n/re/new'));
  await exist.expect('NODE_CREATED /n/re/new');
  await child.expect('NODE_CHILDREN_CHANGED /n/re');
  await other.remove('/n/re/m');
  await missed.expect('NODE_DELETED /n/re/m');
});

for (const how of ['restart', 'kill']) {
  session(`session-survives-${how}`, async () => {
    const zk = await open();
    await zk.mkdirp(`/n/${how}`);
    await zk.create(`/n/${how}/e`, Buffer.from('mine'), CreateMode.EPHEMERAL);
    const before = await zk.exists(`/n/${how}/e`);
    const id = long(zk.raw.getSessionId());
    const states = zk.states.length;
    await call(how);
    await eventually(() => zk.states.slice(states).includes('SYNC_CONNECTED'), 'connected again');
    assert.deepStrictEqual(zk.states.slice(states), ['DISCONNECTED', 'SYNC_CONNECTED']);
    assert.strictEqual(long(zk.raw.getSessionId()), id);
    const [data, stat] = await retryLoss(() => zk.getData(`/n/${how}/e`));
    assert.strictEqual(data.toString(), 'mine');
    assert.deepStrictEqual(stat, before);
    assert.strictEqual(await zk.create(`/n/${how}/s-`, CreateMode.PERSISTENT_SEQUENTIAL), `/n/${how}/s-0000000001`);
    await zk.close();
    const late = await open();
    assert.deepStrictEqual((await late.getChildren(`/n/${how}`))[0], ['s-0000000001']);
  });
}

session('acls-and-auth', async () => {
  const zk = await open();
  const other = await open();
  await zk.mkdirp('/n/acl');
  zk.raw.addAuthInfo('digest', Buffer.from('bob:secret'));
  const mine = new Id('digest', 'bob:fyVmFCwVbTJYrznoSu1koqYEYF0=');
  await zk.create('/n/acl/mine', Buffer.from('p'), ACL.CREATOR_ALL_ACL);
  const [acls, stat] = await zk.getACL('/n/acl/mine');
  assert.deepStrictEqual(acls.map((a) => [a.permission, a.id.scheme, a.id.id]), [[31, 'digest', mine.id]]);
  assert.strictEqual(stat.aversion, 0);
  await refused(Exception.NO_AUTH, other.getData('/n/acl/mine'));
  await refused(Exception.NO_AUTH, other.setData('/n/acl/mine', Buffer.from('')));
  await refused(Exception.NO_AUTH, other.getChildren('/n/acl/mine'));
  await refused(Exception.NO_AUTH, other.setACL('/n/acl/mine', ACL.OPEN_ACL_UNSAFE));
  await zk.setACL('/n/acl/mine', [new ACL(Permission.READ, Id.ANYONE_ID_UNSAFE), new ACL(Permission.ALL, mine)], 0);
  assert.strictEqual((await other.getData('/n/acl/mine'))[0].toString(), 'p');
  await refused(Exception.BAD_VERSION, zk.setACL('/n/acl/mine', ACL.OPEN_ACL_UNSAFE, 0));
  await refused(Exception.INVALID_ACL, zk.create('/n/acl/bad', [new ACL(31, new Id('nope', 'x'))]));
  // The credential is sent again on every new connection, but behind what was asked for while there was none.
  const states = zk.states.length;
  await call('cut');
  await eventually(() => zk.states.slice(states).includes('SYNC_CONNECTED'), 'connected again');
  await retryLoss(() => zk.setData('/n/acl/mine', Buffer.from('q')));
  const third = await open();
  const failed = new Promise((resolve) => third.raw.once('authenticationFailed', resolve));
  third.raw.addAuthInfo('no-such-scheme', Buffer.from('x'));
  await failed;
  third.closed = true; // the server has closed it
});

session('transactions', async () => {
  const zk = await open();
  await zk.mkdirp('/n/tx');
  let { error, results } = await zk.commit(zk.raw.transaction()
    .create('/n/tx/a', Buffer.from('1'))
    .create('/n/tx/s-', Buffer.from(''), CreateMode.PERSISTENT_SEQUENTIAL)
    .setData('/n/tx/a', Buffer.from('22'), 0)
    .check('/n/tx/a', 1)
    .create('/n/tx/gone')
    .remove('/n/tx/gone'));
  assert.ifError(error);
  assert.deepStrictEqual(results.map((r) => r.type), [1, 1, 5, 13, 1, 2]);
  assert.strictEqual(results[1].path, '/n/tx/s-0000000001');
  assert.deepStrictEqual([results[2].stat.version, results[2].stat.dataLength], [1, 2]);
  ({ error, results } = await zk.commit(zk.raw.transaction().create('/n/tx/b').check('/n/tx/a', 9).remove('/n/tx/a')));
  assert.strictEqual(error.getCode(), Exception.BAD_VERSION);
  assert.deepStrictEqual(results.map((r) => r.err), [0, Exception.BAD_VERSION, Exception.RUNTIME_INCONSISTENCY]);
  assert.strictEqual(await zk.exists('/n/tx/b'), null);
});

session('pipelined-order', async () => {
  const zk = await open();
  await zk.mkdirp('/n/order');
  const creates = [];
  for (let i = 0; i < 2000; i++) creates.push(zk.create('/n/order/x-', CreateMode.PERSISTENT_SEQUENTIAL));
  const paths = await Promise.all(creates);
  assert.deepStrictEqual(paths, paths.map((_, i) => `/n/order/x-${String(i).padStart(10, '0')}`));
  for (let i = 0; i < 100; i++) {
    const write = zk.setData('/n/order', Buffer.from(String(i)));
    assert.strictEqual((await zk.getData('/n/order'))[0].toString(), String(i), 'read your writes');
    await write;
  }
});

session('chroot', async () => {
  const plain = await open();
  await plain.mkdirp('/n/chroot');
  const zk = await open(`${address}/n/chroot`);
  const watch = watcher();
  await zk.exists('/x-0000000000', watch);
  assert.strictEqual(await zk.create('/x-', CreateMode.PERSISTENT_SEQUENTIAL), '/x-0000000000');
  await watch.expect('NODE_CREATED /x-0000000000');
  assert(await plain.exists('/n/chroot/x-0000000000'));
});

session('events-know-their-type', async () => {
  const zk = await open();
  await zk.mkdirp('/n/types');
  const types = [];
  await zk.exists('/n/types', (event) => types.push(event.getType()));
  await zk.setData('/n/types', Buffer.from('x'));
  await eventually(() => types.length === 1, 'an event');
  assert.deepStrictEqual(types, [Event.NODE_DATA_CHANGED]);
});

run();
