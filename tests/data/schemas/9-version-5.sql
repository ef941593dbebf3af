BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('5');
CREATE TABLE answering (
	user VARCHAR(200) NOT NULL, 
	conversation VARCHAR(32) NOT NULL, 
	process VARCHAR(32) NOT NULL, 
	place VARCHAR(255) NOT NULL, 
	seen FLOAT NOT NULL, 
	stop BOOLEAN NOT NULL, 
	PRIMARY KEY (user, conversation)
);
INSERT INTO "answering" VALUES('ada','61240a183bd5','gone','another-computer 1 0.0',1.7956319751280143261e+09,0);
CREATE TABLE conversations (
	n INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	user VARCHAR(200) NOT NULL, 
	title VARCHAR(200) NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	changed VARCHAR(40) NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (id)
);
INSERT INTO "conversations" VALUES(1,'62e182a03980','ada','What is a good diet?','2026-11-25T14:11:22.916232+00:00','2026-11-25T14:11:23.002897+00:00');
INSERT INTO "conversations" VALUES(2,'d83d4a782a0b','bob','Work','2026-11-25T14:11:23.069424+00:00','2026-11-25T14:11:23.072490+00:00');
CREATE TABLE fact_fields (
	fact VARCHAR(32) NOT NULL, 
	field VARCHAR(32) NOT NULL, 
	PRIMARY KEY (fact), 
	FOREIGN KEY(fact) REFERENCES facts (id) ON DELETE CASCADE
);
INSERT INTO "fact_fields" VALUES('a43d19e2f7dd','health');
CREATE TABLE facts (
	n INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	user VARCHAR(200) NOT NULL, 
	text TEXT NOT NULL, 
	"key" VARCHAR(1000) NOT NULL, 
	source VARCHAR(200) NOT NULL, 
	"on" BOOLEAN NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	changed VARCHAR(40) NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (user, "key"), 
	UNIQUE (id)
);
INSERT INTO "facts" VALUES(1,'a43d19e2f7dd','ada','I''m lactose intolerant.','im lactose intolerant','typed',1,'2026-11-25T14:11:22.788539+00:00','2026-11-25T14:11:22.788539+00:00');
INSERT INTO "facts" VALUES(2,'592af9487e2f','ada','I like tea.','i like tea','typed',0,'2026-11-25T14:11:22.824336+00:00','2026-11-25T14:11:22.842138+00:00');
INSERT INTO "facts" VALUES(3,'389ab436f0c3','bob','I''m an engineer.','im an engineer','typed',1,'2026-11-25T14:11:22.868227+00:00','2026-11-25T14:11:22.868227+00:00');
CREATE TABLE known_addresses (
	name VARCHAR(64) NOT NULL, 
	address VARCHAR(64) NOT NULL, 
	last VARCHAR(40) NOT NULL, 
	PRIMARY KEY (name, address)
);
INSERT INTO "known_addresses" VALUES('ada','192.0.2.1','2026-11-25T14:11:26.040339+00:00');
CREATE TABLE preferences (
	user VARCHAR(200) NOT NULL, 
	choices TEXT NOT NULL, 
	PRIMARY KEY (user)
);
INSERT INTO "preferences" VALUES('ada','{"k": 6}');
CREATE TABLE schema_version (
	id INTEGER NOT NULL, 
	version INTEGER, 
	PRIMARY KEY (id)
);
INSERT INTO "schema_version" VALUES(1,3);
CREATE TABLE sessions (
	hash VARCHAR(64) NOT NULL, 
	user VARCHAR(64) NOT NULL, 
	password VARCHAR(64) NOT NULL, 
	begun FLOAT NOT NULL, 
	PRIMARY KEY (hash)
);
INSERT INTO "sessions" VALUES('379e3782e9e65d4ffa817a52f0bacafcde423e49bef4fa9b2ca07be4338f85e4','ada','756024c21c8066f693e0f2f21b9c62be6680ac8cd57043bb0d47e3005cf9dfb8',1.79569478555699133873e+09);
CREATE TABLE tokens (
	id VARCHAR(32) NOT NULL, 
	user VARCHAR(64) NOT NULL, 
	label VARCHAR(100) NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	used VARCHAR(40) NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "tokens" VALUES('9ee0dd61429f','ada','laptop','5b82b2c54475cbae413f69ece9777deef76fcfb856a31a4c9b4fb3f1a4e0a28a','2026-11-25T14:11:26.088416+00:00','');
CREATE TABLE turns (
	n INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	conversation VARCHAR(32) NOT NULL, 
	process VARCHAR(32) NOT NULL, 
	utterance TEXT NOT NULL, 
	reply TEXT NOT NULL, 
	words TEXT NOT NULL, 
	feedback INTEGER NOT NULL, 
	turn TEXT NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (id), 
	FOREIGN KEY(conversation) REFERENCES conversations (id) ON DELETE CASCADE
);
INSERT INTO "turns" VALUES(1,'bb49044faba6','62e182a03980','3cf19c5179c2','What is a good diet?','Lentils are rich in protein. [1]','what is a good diet?
lentils are rich in protein. [1]',1,'{"utterance":"What is a good diet?","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1,"retriever":"bm25","below":""},"id":"bb49044faba6","created":"2026-11-25T14:11:22.926080Z","temporary":false,"intent":"question","english":"","asks":"","question":"","rewritten":false,"facts":[],"draft":"","iterations":[],"queries":[],"passages":[{"id":"p1","title":"Lentils","text":"Lentils are rich in protein.","score":1.5,"found_by":[],"source":"","confidence":null,"own":false,"page":0}],"reserve":[],"confidence":null,"dropped":[],"digests":[],"left_out":[],"answer":{"text":"Lentils are rich in protein. [1]","unknown":false,"origin":"passages","outcome":"written"},"own_answer":"","pool":[],"reasoning":"","listed":[],"about":"","offers":[],"sentences":[],"citations":[],"status":"done","step":"","events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
INSERT INTO "turns" VALUES(2,'eb3abae72965','62e182a03980','3cf19c5179c2','And to drink?','Oat drink.','and to drink?
oat drink.',0,'{"utterance":"And to drink?","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1,"retriever":"bm25","below":""},"id":"eb3abae72965","created":"2026-11-25T14:11:22.988215Z","temporary":false,"intent":"question","english":"","asks":"","question":"","rewritten":false,"facts":[],"draft":"","iterations":[],"queries":[],"passages":[],"reserve":[],"confidence":null,"dropped":[],"digests":[],"left_out":[],"answer":{"text":"Oat drink.","unknown":false,"origin":"passages","outcome":"written"},"own_answer":"","pool":[],"reasoning":"","listed":[],"about":"","offers":[],"sentences":[],"citations":[],"status":"done","step":"","events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
INSERT INTO "turns" VALUES(3,'07625985c464','62e182a03980','3cf19c5179c2','And to drink?','Tea, without milk.','and to drink?
tea, without milk.',0,'{"utterance":"And to drink?","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1,"retriever":"bm25","below":""},"id":"07625985c464","created":"2026-11-25T14:11:23.002413Z","temporary":false,"intent":"question","english":"","asks":"","question":"","rewritten":false,"facts":[],"draft":"","iterations":[],"queries":[],"passages":[],"reserve":[],"confidence":null,"dropped":[],"digests":[],"left_out":[],"answer":{"text":"Tea, without milk.","unknown":false,"origin":"passages","outcome":"written"},"own_answer":"","pool":[],"reasoning":"","listed":[],"about":"","offers":[],"sentences":[],"citations":[],"status":"done","step":"","events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
INSERT INTO "turns" VALUES(4,'506d2f4e8879','d83d4a782a0b','3cf19c5179c2','Hello','Hi.','hello
hi.',0,'{"utterance":"Hello","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1,"retriever":"bm25","below":""},"id":"506d2f4e8879","created":"2026-11-25T14:11:23.072112Z","temporary":false,"intent":"question","english":"","asks":"","question":"","rewritten":false,"facts":[],"draft":"","iterations":[],"queries":[],"passages":[],"reserve":[],"confidence":null,"dropped":[],"digests":[],"left_out":[],"answer":{"text":"Hi.","unknown":false,"origin":"passages","outcome":"written"},"own_answer":"","pool":[],"reasoning":"","listed":[],"about":"","offers":[],"sentences":[],"citations":[],"status":"done","step":"","events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
CREATE TABLE usage (
	user VARCHAR(64) NOT NULL, 
	day VARCHAR(10) NOT NULL, 
	turns INTEGER NOT NULL, 
	read INTEGER NOT NULL, 
	written INTEGER NOT NULL, 
	seconds FLOAT NOT NULL, 
	PRIMARY KEY (user, day)
);
INSERT INTO "usage" VALUES('ada','2026-11-25',1,0,0,0.0);
CREATE TABLE users (
	name VARCHAR(64) NOT NULL, 
	hash VARCHAR(300) NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "users" VALUES('ada','scrypt$16384$8$5$tiNwZB/li3xqVGr1ZQgxLg==$0a6RL++LFyrUhpu8AaPgI4nO2AAeB85ZvCL57C4dVpY=','2026-11-25T14:11:26.025930+00:00');
CREATE TABLE uses (
	turn VARCHAR(32) NOT NULL, 
	fact VARCHAR(32) NOT NULL, 
	PRIMARY KEY (turn, fact), 
	FOREIGN KEY(turn) REFERENCES turns (id) ON DELETE CASCADE
);
INSERT INTO "uses" VALUES('bb49044faba6','a43d19e2f7dd');
CREATE TABLE versions (
	turn VARCHAR(32) NOT NULL, 
	original VARCHAR(32) NOT NULL, 
	shown INTEGER NOT NULL, 
	side INTEGER NOT NULL, 
	PRIMARY KEY (turn), 
	FOREIGN KEY(turn) REFERENCES turns (id) ON DELETE CASCADE, 
	FOREIGN KEY(original) REFERENCES turns (id) ON DELETE CASCADE
);
INSERT INTO "versions" VALUES('eb3abae72965','eb3abae72965',0,0);
INSERT INTO "versions" VALUES('07625985c464','eb3abae72965',1,0);
CREATE TABLE wrong_passwords (
	"key" VARCHAR(64) NOT NULL, 
	count INTEGER NOT NULL, 
	until FLOAT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "wrong_passwords" VALUES('0769420936ab99052c9256ce07b8216c8ab197e43f4ed7aa2176c361e5d147de',1,1.79563197714700436592e+09);
CREATE INDEX ix_conversations_user ON conversations (user);
CREATE INDEX turns_of ON turns (conversation, n);
CREATE INDEX ix_uses_fact ON uses (fact);
CREATE INDEX ix_versions_original ON versions (original);
CREATE INDEX ix_tokens_user ON tokens (user);
CREATE INDEX ix_answering_conversation ON answering (conversation);
CREATE INDEX ix_wrong_passwords_until ON wrong_passwords (until);
CREATE INDEX ix_sessions_user ON sessions (user);
COMMIT;
