/* The C client at work: every operation, watches, asynchronous calls, transactions, reconnects. */
#include "report.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

jmp_buf check_failed;
char check_why[1024];

static const char *address;
static const char *certificates; /* authority, certificate, key and its password, for TLS; NULL without it */
static const int session_ms = 9000;

void call(const char *what) {
	char answer[1024];
	printf("CALL %s\n", what);
	fflush(stdout);
	if (fgets(answer, sizeof answer, stdin) == NULL || strncmp(answer, "OK", 2) != 0)
		FAIL("CALL %s was not answered with OK", what);
}

/* A session and what its watcher saw. */
struct client {
	zhandle_t *zh;
	atomic_int connected; /* 1 while the session is connected */
	atomic_int connects;  /* how often it became so */
};

/* The events of one watch. */
struct events {
	pthread_mutex_t mu;
	int count;
	int type[16];
	char path[16][128];
};

static void on_session(zhandle_t *zh, int type, int state, const char *path, void *ctx) {
	struct client *c = ctx;
	(void)zh;
	(void)path;
	if (type != ZOO_SESSION_EVENT)
		return;
	if (state == ZOO_CONNECTED_STATE) {
		atomic_fetch_add(&c->connects, 1);
		atomic_store(&c->connected, 1);
	} else {
		atomic_store(&c->connected, 0);
	}
}

static void on_event(zhandle_t *zh, int type, int state, const char *path, void *ctx) {
	struct events *e = ctx;
	(void)zh;
	(void)state;
	if (type == ZOO_SESSION_EVENT)
		return;
	pthread_mutex_lock(&e->mu);
	if (e->count < 16) {
		e->type[e->count] = type;
		snprintf(e->path[e->count], sizeof e->path[0], "%s", path);
	}
	e->count++;
	pthread_mutex_unlock(&e->mu);
}

static int count_of(struct events *e) {
	pthread_mutex_lock(&e->mu);
	int n = e->count;
	pthread_mutex_unlock(&e->mu);
	return n;
}

static void expect_event(struct events *e, int index, int type, const char *path) {
	EVENTUALLY(count_of(e) > index);
	EXPECT_INT(e->type[index], type);
	EXPECT_STR(e->path[index], path);
}

static struct events *new_events(void) {
	struct events *e = calloc(1, sizeof *e);
	pthread_mutex_init(&e->mu, NULL);
	return e;
}

static void open_client(struct client *c, const char *hosts, int timeout_ms, const clientid_t *id) {
	memset(c, 0, sizeof *c);
#ifdef HAVE_OPENSSL_H
	if (certificates != NULL)
		c->zh = zookeeper_init_ssl(hosts, certificates, on_session, timeout_ms, id, c, 0);
	else
#endif
		c->zh = zookeeper_init(hosts, on_session, timeout_ms, id, c, 0);
	EXPECT(c->zh != NULL);
	EVENTUALLY(atomic_load(&c->connected));
}

static void close_client(struct client *c) {
	if (c->zh != NULL)
		OK(zookeeper_close(c->zh));
	c->zh = NULL;
}

static struct client a, b; /* the sessions of the current check; closed behind it */

static void make(zhandle_t *zh, const char *path) {
	int rc = zoo_create(zh, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
	if (rc != ZOK && rc != ZNODEEXISTS)
		FAIL("create %s: %s", path, zerror(rc));
}

static void expect_data(zhandle_t *zh, const char *path, const char *want, struct Stat *stat) {
	char buf[256];
	int len = sizeof buf - 1;
	OK(zoo_get(zh, path, 0, buf, &len, stat));
	buf[len < 0 ? 0 : len] = 0;
	EXPECT_STR(buf, want);
}

/* Field by field, as the structure has padding. */
static void expect_same(const struct Stat *got, const struct Stat *want) {
	EXPECT_INT(got->czxid, want->czxid);
	EXPECT_INT(got->mzxid, want->mzxid);
	EXPECT_INT(got->pzxid, want->pzxid);
	EXPECT_INT(got->ctime, want->ctime);
	EXPECT_INT(got->mtime, want->mtime);
	EXPECT_INT(got->version, want->version);
	EXPECT_INT(got->cversion, want->cversion);
	EXPECT_INT(got->aversion, want->aversion);
	EXPECT_INT(got->ephemeralOwner, want->ephemeralOwner);
	EXPECT_INT(got->dataLength, want->dataLength);
	EXPECT_INT(got->numChildren, want->numChildren);
}

static void session_handshake(void) {
	open_client(&a, address, session_ms, NULL);
	EXPECT(zoo_client_id(a.zh)->client_id != 0);
	EXPECT_INT(zoo_recv_timeout(a.zh), session_ms);
	EXPECT_INT(zoo_state(a.zh), ZOO_CONNECTED_STATE);
	close_client(&a);
	open_client(&a, address, 500, NULL);
	EXPECT_INT(zoo_recv_timeout(a.zh), 1000);
	close_client(&a);
	open_client(&a, address, 3600000, NULL);
	EXPECT_INT(zoo_recv_timeout(a.zh), 10000);
}

static void create_get_set_delete(void) {
	char path[128];
	struct Stat st, st2;
	open_client(&a, address, session_ms, NULL);
	make(a.zh, "/c");
	OK(zoo_create(a.zh, "/c/n", "one", 3, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, path, sizeof path));
	EXPECT_STR(path, "/c/n");
	expect_data(a.zh, "/c/n", "one", &st);
	EXPECT_INT(st.version, 0);
	EXPECT_INT(st.dataLength, 3);
	EXPECT_INT(st.ephemeralOwner, 0);
	EXPECT_INT(st.czxid, st.mzxid);
	EXPECT_INT(st.czxid, st.pzxid);
	OK(zoo_set2(a.zh, "/c/n", "three", 5, 0, &st2));
	EXPECT_INT(st2.version, 1);
	EXPECT(st2.mzxid > st.mzxid);
	EXPECT_RC(zoo_set(a.zh, "/c/n", "x", 1, 0), ZBADVERSION);
	OK(zoo_set(a.zh, "/c/n", "", 0, -1));
	expect_data(a.zh, "/c/n", "", &st);
	EXPECT_RC(zoo_create(a.zh, "/c/n", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZNODEEXISTS);
	EXPECT_RC(zoo_create(a.zh, "/c/none/x", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZNONODE);
	EXPECT_RC(zoo_exists(a.zh, "/c/none", 0, &st), ZNONODE);
	EXPECT_RC(zoo_delete(a.zh, "/c/none", -1), ZNONODE);
	EXPECT_RC(zoo_delete(a.zh, "/c/n", 9), ZBADVERSION);
	make(a.zh, "/c/n/child");
	EXPECT_RC(zoo_delete(a.zh, "/c/n", -1), ZNOTEMPTY);
	OK(zoo_delete(a.zh, "/c/n/child", 0));
	OK(zoo_delete(a.zh, "/c/n", 2));
	EXPECT_RC(zoo_exists(a.zh, "/c/n", 0, &st), ZNONODE);
	/* Null data is not empty data. */
	OK(zoo_create(a.zh, "/c/null", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
	char buf[8];
	int len = sizeof buf;
	OK(zoo_get(a.zh, "/c/null", 0, buf, &len, &st));
	EXPECT_INT(len, -1);
	EXPECT_INT(st.dataLength, 0);
}

static void create2_and_modes(void) {
	char path[128];
	struct Stat st, st2;
	open_client(&a, address, session_ms, NULL);
	make(a.zh, "/c-modes");
	OK(zoo_create2(a.zh, "/c-modes/p", "12", 2, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, path, sizeof path, &st));
	OK(zoo_exists(a.zh, "/c-modes/p", 0, &st2));
	expect_same(&st, &st2);
	OK(zoo_create2(a.zh, "/c-modes/s-", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_SEQUENTIAL, path, sizeof path, &st));
	EXPECT_STR(path, "/c-modes/s-0000000001");
	OK(zoo_create(a.zh, "/c-modes/e-", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL_SEQUENTIAL, path, sizeof path));
	EXPECT_STR(path, "/c-modes/e-0000000002");
	OK(zoo_create(a.zh, "/c-modes/e", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, path, sizeof path));
	OK(zoo_exists(a.zh, "/c-modes/e", 0, &st));
	EXPECT_INT(st.ephemeralOwner, zoo_client_id(a.zh)->client_id);
	EXPECT_RC(zoo_create(a.zh, "/c-modes/e/x", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZNOCHILDRENFOREPHEMERALS);
	OK(zoo_create(a.zh, "/c-modes/box", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_CONTAINER, path, sizeof path));
	EXPECT_STR(path, "/c-modes/box");
	OK(zoo_create_ttl(a.zh, "/c-modes/ttl", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_WITH_TTL, 1000, path, sizeof path));
	OK(zoo_create2_ttl(a.zh, "/c-modes/ttl-", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_SEQUENTIAL_WITH_TTL, 1000, path,
	                   sizeof path, &st));
	EXPECT_STR(path, "/c-modes/ttl-0000000006");
	EXPECT_INT(st.ephemeralOwner, 0);
	make(a.zh, "/c-modes/box/x");
	OK(zoo_delete(a.zh, "/c-modes/box/x", -1));
	EVENTUALLY(zoo_exists(a.zh, "/c-modes/box", 0, &st) == ZNONODE);
	EVENTUALLY(zoo_exists(a.zh, "/c-modes/ttl", 0, &st) == ZNONODE);
	EVENTUALLY(zoo_exists(a.zh, path, 0, &st) == ZNONODE);
	close_client(&a);
	open_client(&a, address, session_ms, NULL);
	EXPECT_RC(zoo_exists(a.zh, "/c-modes/e", 0, &st), ZNONODE);
	EXPECT_RC(zoo_exists(a.zh, "/c-modes/e-0000000002", 0, &st), ZNONODE);
}

static atomic_int children_failed;

static void on_child(int rc, const char *path, const void *data) {
	(void)path;
	(void)data;
	if (rc != ZOK)
		atomic_fetch_add(&children_failed, 1);
}

static void children(void) {
	struct String_vector names;
	struct Stat st;
	char path[128];
	open_client(&a, address, session_ms, NULL);
	make(a.zh, "/c-children");
	for (int i = 0; i < 3000; i++) {
		snprintf(path, sizeof path, "/c-children/some-child-%06d", i);
		OK(zoo_acreate(a.zh, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, on_child, NULL));
	}
	OK(zoo_get_children2(a.zh, "/c-children", 0, &names, &st));
	EXPECT_INT(atomic_load(&children_failed), 0);
	EXPECT_INT(names.count, 3000);
	EXPECT_INT(st.numChildren, 3000);
	EXPECT_INT(st.cversion, 3000);
	deallocate_String_vector(&names);
	OK(zoo_get_children(a.zh, "/c-children/some-child-000000", 0, &names));
	EXPECT_INT(names.count, 0);
	deallocate_String_vector(&names);
	EXPECT_RC(zoo_get_children(a.zh, "/c-none", 0, &names), ZNONODE);
}

static void unicode_names(void) {
	static const char *names[] = {"grüße", "日本語", "with space", "...x"};
	char path[128];
	struct Stat st;
	struct String_vector got;
	open_client(&a, address, session_ms, NULL);
	make(a.zh, "/c-unicode");
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof path, "/c-unicode/%s", names[i]);
		OK(zoo_create(a.zh, path, names[i], strlen(names[i]), &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
		expect_data(a.zh, path, names[i], &st);
	}
	OK(zoo_get_children(a.zh, "/c-unicode", 0, &got));
	EXPECT_INT(got.count, 4);
	deallocate_String_vector(&got);
	EXPECT_RC(zoo_create(a.zh, "/c-unicode/\xf0\x9f\x98\x80", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZBADARGUMENTS);
	EXPECT_RC(zoo_create(a.zh, "/c-unicode/\xff\xfe", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZBADARGUMENTS);
}

static void watches(void) {
	struct events *exist = new_events(), *data = new_events(), *child = new_events(), *gone = new_events();
	struct Stat st;
	struct String_vector names;
	char buf[64];
	int len = sizeof buf;
	open_client(&a, address, session_ms, NULL);
	open_client(&b, address, session_ms, NULL);
	make(a.zh, "/c-watch");
	EXPECT_RC(zoo_wexists(a.zh, "/c-watch/n", on_event, exist, &st), ZNONODE);
	OK(zoo_wget_children(a.zh, "/c-watch", on_event, child, &names));
	deallocate_String_vector(&names);
	OK(zoo_create(b.zh, "/c-watch/n", "0", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
	expect_event(exist, 0, ZOO_CREATED_EVENT, "/c-watch/n");
	expect_event(child, 0, ZOO_CHILD_EVENT, "/c-watch");
	OK(zoo_wget(a.zh, "/c-watch/n", on_event, data, buf, &len, &st));
	OK(zoo_set(b.zh, "/c-watch/n", "1", 1, -1));
	expect_event(data, 0, ZOO_CHANGED_EVENT, "/c-watch/n");
	OK(zoo_wexists(a.zh, "/c-watch/n", on_event, gone, &st));
	OK(zoo_delete(b.zh, "/c-watch/n", -1));
	expect_event(gone, 0, ZOO_DELETED_EVENT, "/c-watch/n");
	OK(zoo_exists(a.zh, "/c-watch", 0, &st));
	EXPECT_INT(count_of(exist) + count_of(data) + count_of(child) + count_of(gone), 4);
}

static void remove_watches(void) {
	struct events *first = new_events(), *second = new_events(), *kids = new_events();
	struct Stat st;
	struct String_vector names;
	open_client(&a, address, session_ms, NULL);
	make(a.zh, "/c-remove");
	OK(zoo_wexists(a.zh, "/c-remove", on_event, first, &st));
	OK(zoo_remove_watches(a.zh, "/c-remove", ZWATCHTYPE_DATA, on_event, first, 0));
	EXPECT_RC(zoo_remove_watches(a.zh, "/c-remove", ZWATCHTYPE_DATA, on_event, first, 0), ZNOWATCHER);
	OK(zoo_wexists(a.zh, "/c-remove", on_event, second, &st));
	OK(zoo_wget_children(a.zh, "/c-remove", on_event, kids, &names));
	deallocate_String_vector(&names);
	OK(zoo_remove_all_watches(a.zh, "/c-remove", ZWATCHTYPE_ANY, 0));
	OK(zoo_set(a.zh, "/c-remove", "x", 1, -1));
	make(a.zh, "/c-remove/child");
	OK(zoo_exists(a.zh, "/c-remove", 0, &st));
	for (int i = 0; i < 3; i++) {
		struct events *e = i == 0 ? first : i == 1 ? second : kids;
		for (int k = 0; k < count_of(e); k++)
			EXPECT_INT(e->type[k], ZOO_NOTWATCHING_EVENT);
	}
}

static void watches_after_reconnect(void) {
	struct events *data = new_events(), *exist = new_events(), *child = new_events(), *missed = new_events();
	struct Stat st;
	struct String_vector names;
	char buf[64];
	int len = sizeof buf, rc;
	open_client(&a, address, session_ms, NULL);
	open_client(&b, address, session_ms, NULL);
	make(a.zh, "/c-re");
	make(a.zh, "/c-re/n");
	make(a.zh, "/c-re/m");
	OK(zoo_wget(a.zh, "/c-re/n", on_event, data, buf, &len, &st));
	EXPECT_RC(zoo_wexists(a.zh, "/c-re/new", on_event, exist, &st), ZNONODE);
	OK(zoo_wget_children(a.zh, "/c-re", on_event, child, &names));
	deallocate_String_vector(&names);
	len = sizeof buf;
	OK(zoo_wget(a.zh, "/c-re/m", on_event, missed, buf, &len, &st));
	int64_t session = zoo_client_id(a.zh)->client_id;
	int before = atomic_load(&a.connects);
	call("cut");
	while ((rc = zoo_set(b.zh, "/c-re/n", "1", 1, 0)) == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT)
		usleep(10000);
	if (rc != ZOK && rc != ZBADVERSION) /* the lost one may have been applied */
		FAIL("set after the cut: %s", zerror(rc));
	EVENTUALLY(atomic_load(&a.connects) > before);
	EXPECT_INT(zoo_client_id(a.zh)->client_id, session);
	expect_event(data, 0, ZOO_CHANGED_EVENT, "/c-re/n");
	OK(zoo_create(b.zh, "/c-re/new", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
	expect_event(exist, 0, ZOO_CREATED_EVENT, "/c-re/new");
	expect_event(child, 0, ZOO_CHILD_EVENT, "/c-re");
	OK(zoo_delete(b.zh, "/c-re/m", -1));
	expect_event(missed, 0, ZOO_DELETED_EVENT, "/c-re/m");
}

static void session_survives(const char *how) {
	char base[64], e[80], s[80], path[128], want[128];
	struct Stat st, st2;
	snprintf(base, sizeof base, "/c-%s", how);
	snprintf(e, sizeof e, "%s/e", base);
	snprintf(s, sizeof s, "%s/s-", base);
	open_client(&a, address, session_ms, NULL);
	make(a.zh, base);
	OK(zoo_create2(a.zh, e, "mine", 4, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0, &st));
	int64_t session = zoo_client_id(a.zh)->client_id;
	int before = atomic_load(&a.connects);
	call(how);
	EVENTUALLY(atomic_load(&a.connects) > before && atomic_load(&a.connected));
	EXPECT_INT(zoo_client_id(a.zh)->client_id, session);
	expect_data(a.zh, e, "mine", &st2);
	expect_same(&st, &st2);
	OK(zoo_create(a.zh, s, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_SEQUENTIAL, path, sizeof path));
	snprintf(want, sizeof want, "%s/s-0000000001", base);
	EXPECT_STR(path, want);
	close_client(&a);
	open_client(&a, address, session_ms, NULL);
	EXPECT_RC(zoo_exists(a.zh, e, 0, &st), ZNONODE);
}

static void session_survives_restart(void) { session_survives("restart"); }
static void session_survives_kill(void) { session_survives("kill"); }

static void session_taken_over(void) {
	struct Stat st;
	open_client(&a, address, session_ms, NULL);
	make(a.zh, "/c-take");
	OK(zoo_create(a.zh, "/c-take/e", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0));
	clientid_t id = *zoo_client_id(a.zh);
	open_client(&b, address, session_ms, &id);
	EXPECT_INT(zoo_client_id(b.zh)->client_id, id.client_id);
	OK(zoo_exists(b.zh, "/c-take/e", 0, &st));
	EXPECT_INT(st.ephemeralOwner, id.client_id);
}

static void acls_and_auth(void) {
	struct ACL_vector got;
	struct Stat st;
	open_client(&a, address, session_ms, NULL);
	open_client(&b, address, session_ms, NULL);
	make(a.zh, "/c-acl");
	OK(zoo_add_auth(a.zh, "digest", "bob:secret", 10, NULL, NULL));
	OK(zoo_create(a.zh, "/c-acl/mine", "p", 1, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0));
	OK(zoo_get_acl(a.zh, "/c-acl/mine", &got, &st));
	EXPECT_INT(got.count, 1);
	EXPECT_INT(got.data[0].perms, ZOO_PERM_ALL);
	EXPECT_STR(got.data[0].id.scheme, "digest");
	EXPECT_STR(got.data[0].id.id, "bob:fyVmFCwVbTJYrznoSu1koqYEYF0=");
	deallocate_ACL_vector(&got);
	char buf[64];
	int len = sizeof buf;
	EXPECT_RC(zoo_get(b.zh, "/c-acl/mine", 0, buf, &len, NULL), ZNOAUTH);
	EXPECT_RC(zoo_set(b.zh, "/c-acl/mine", "", 0, -1), ZNOAUTH);
	EXPECT_RC(zoo_set_acl(b.zh, "/c-acl/mine", -1, &ZOO_OPEN_ACL_UNSAFE), ZNOAUTH);
	OK(zoo_set_acl(a.zh, "/c-acl/mine", 0, &ZOO_READ_ACL_UNSAFE));
	EXPECT_RC(zoo_set_acl(a.zh, "/c-acl/mine", 0, &ZOO_READ_ACL_UNSAFE), ZNOAUTH);
	expect_data(b.zh, "/c-acl/mine", "p", &st);
	EXPECT_INT(st.aversion, 1);
	struct ACL bad = {31, {"nope", "x"}};
	struct ACL_vector bads = {1, &bad};
	EXPECT_RC(zoo_create(a.zh, "/c-acl/bad", "", 0, &bads, 0, NULL, 0), ZINVALIDACL);
	/* Without any identity "auth" means nobody. */
	EXPECT_RC(zoo_create(b.zh, "/c-acl/bad", "", 0, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0), ZINVALIDACL);
}

static void transactions(void) {
	char p1[128], p2[128];
	struct Stat st;
	zoo_op_t ops[6];
	zoo_op_result_t results[6];
	open_client(&a, address, session_ms, NULL);
	make(a.zh, "/c-multi");
	zoo_create_op_init(&ops[0], "/c-multi/a", "1", 1, &ZOO_OPEN_ACL_UNSAFE, 0, p1, sizeof p1);
	zoo_create_op_init(&ops[1], "/c-multi/s-", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_SEQUENTIAL, p2, sizeof p2);
	zoo_set_op_init(&ops[2], "/c-multi/a", "22", 2, 0, &st);
	zoo_check_op_init(&ops[3], "/c-multi/a", 1);
	zoo_create_op_init(&ops[4], "/c-multi/gone", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
	zoo_delete_op_init(&ops[5], "/c-multi/gone", 0);
	OK(zoo_multi(a.zh, 6, ops, results));
	for (int i = 0; i < 6; i++)
		EXPECT_RC(results[i].err, ZOK);
	EXPECT_STR(p1, "/c-multi/a");
	EXPECT_STR(p2, "/c-multi/s-0000000001");
	EXPECT_INT(st.version, 1);
	EXPECT_INT(st.dataLength, 2);
	expect_data(a.zh, "/c-multi/a", "22", &st);

	zoo_create_op_init(&ops[0], "/c-multi/b", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
	zoo_check_op_init(&ops[1], "/c-multi/a", 7);
	zoo_delete_op_init(&ops[2], "/c-multi/a", -1);
	EXPECT_RC(zoo_multi(a.zh, 3, ops, results), ZBADVERSION);
	EXPECT_RC(results[0].err, ZOK);
	EXPECT_RC(results[1].err, ZBADVERSION);
	EXPECT_RC(results[2].err, ZRUNTIMEINCONSISTENCY);
	EXPECT_RC(zoo_exists(a.zh, "/c-multi/b", 0, &st), ZNONODE);
	OK(zoo_multi(a.zh, 0, ops, results));
}

static atomic_int async_done, async_failed;

static void on_created(int rc, const char *path, const void *data) {
	char want[64];
	snprintf(want, sizeof want, "/c-async/n-%010d", atomic_load(&async_done));
	if (rc != ZOK || strcmp(path, want) != 0)
		atomic_fetch_add(&async_failed, 1);
	(void)data;
	atomic_fetch_add(&async_done, 1);
}

static void on_data(int rc, const char *value, int len, const struct Stat *stat, const void *data) {
	if (rc != ZOK || len != 1 || value[0] != 'v' || stat->version != 0)
		atomic_fetch_add(&async_failed, 1);
	(void)data;
	atomic_fetch_add(&async_done, 1);
}

static void on_synced(int rc, const char *path, const void *data) {
	if (rc != ZOK || strcmp(path, "/c-async") != 0)
		atomic_fetch_add(&async_failed, 1);
	(void)data;
	atomic_fetch_add(&async_done, 1);
}

static void on_void(int rc, const void *data) {
	if (rc != ZOK)
		atomic_fetch_add(&async_failed, 1);
	(void)data;
	atomic_fetch_add(&async_done, 1);
}

static void async_calls(void) {
	char path[64];
	const int count = 2000;
	open_client(&a, address, session_ms, NULL);
	make(a.zh, "/c-async");
	atomic_store(&async_done, 0);
	atomic_store(&async_failed, 0);
	for (int i = 0; i < count; i++)
		OK(zoo_acreate(a.zh, "/c-async/n-", "v", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_SEQUENTIAL, on_created, NULL));
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof path, "/c-async/n-%010d", i);
		OK(zoo_aget(a.zh, path, 0, on_data, NULL));
	}
	OK(zoo_async(a.zh, "/c-async", on_synced, NULL));
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof path, "/c-async/n-%010d", i);
		OK(zoo_adelete(a.zh, path, 0, on_void, NULL));
	}
	EVENTUALLY(atomic_load(&async_done) == 3 * count + 1);
	EXPECT_INT(atomic_load(&async_failed), 0);
}

static void config_and_reconfig(void) {
	char buf[4096];
	int len = sizeof buf;
	struct Stat st;
	open_client(&a, address, session_ms, NULL);
	OK(zoo_getconfig(a.zh, 0, buf, &len, &st));
	EXPECT_INT(st.numChildren, 0);
	len = sizeof buf;
	int rc = zoo_reconfig(a.zh, "server.9=127.0.0.1:1:2:participant;3", NULL, NULL, -1, buf, &len, &st);
	EXPECT(rc == ZRECONFIGDISABLED || rc == ZUNIMPLEMENTED || rc == ZNOAUTH);
	OK(zoo_exists(a.zh, "/", 0, &st));
}

static void chroot_path(void) {
	char path[128], hosts[128];
	struct events *e = new_events();
	struct Stat st;
	open_client(&a, address, session_ms, NULL);
	make(a.zh, "/c-root");
	snprintf(hosts, sizeof hosts, "%s/c-root", address);
	open_client(&b, hosts, session_ms, NULL);
	EXPECT_RC(zoo_wexists(b.zh, "/x-0000000000", on_event, e, &st), ZNONODE);
	OK(zoo_create(b.zh, "/x-", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_SEQUENTIAL, path, sizeof path));
	EXPECT_STR(path, "/x-0000000000");
	expect_event(e, 0, ZOO_CREATED_EVENT, "/x-0000000000");
	OK(zoo_exists(a.zh, "/c-root/x-0000000000", 0, &st));
}

static const struct {
	const char *name;
	void (*run)(void);
	int plain; /* not with TLS: needs something done to the server, or clients without the identity of a certificate */
} checks[] = {
	{"session-handshake", session_handshake, 0},
	{"create-get-set-delete", create_get_set_delete, 0},
	{"create2-and-modes", create2_and_modes, 0},
	{"children", children, 0},
	{"unicode-names", unicode_names, 0},
	{"watches", watches, 0},
	{"remove-watches", remove_watches, 0},
	{"watches-after-reconnect", watches_after_reconnect, 1},
	{"session-survives-restart", session_survives_restart, 1},
	{"session-survives-kill", session_survives_kill, 1},
	{"session-taken-over", session_taken_over, 0},
	{"acls-and-auth", acls_and_auth, 1},
	{"transactions", transactions, 0},
	{"async-calls", async_calls, 0},
	{"config-and-reconfig", config_and_reconfig, 0},
	{"chroot", chroot_path, 0},
};

int main(int argc, char **argv) {
	volatile int failed = 0, run = 0; /* kept across longjmp */
	const int count = sizeof checks / sizeof checks[0];
	if (argc != 2 && argc != 3)
		return 2;
	address = argv[1];
	certificates = argc == 3 ? argv[2] : NULL;
	zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
	for (int i = 0; i < count; i++) {
		if (certificates != NULL && checks[i].plain)
			continue;
		run++;
		if (setjmp(check_failed) == 0) {
			checks[i].run();
			close_client(&a);
			close_client(&b);
			printf("PASS %s\n", checks[i].name);
		} else {
			failed++;
			printf("FAIL %s: %s\n", checks[i].name, check_why);
			if (a.zh != NULL)
				zookeeper_close(a.zh);
			if (b.zh != NULL)
				zookeeper_close(b.zh);
			a.zh = b.zh = NULL;
		}
		fflush(stdout);
	}
	printf("END %d\n", run);
	return failed != 0;
}
